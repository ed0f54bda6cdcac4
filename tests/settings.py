"""The portal's settings for tests: a home of their own, no broker, quick passwords."""

import atexit
import os
import shutil
import tempfile

_home = tempfile.mkdtemp(prefix="tidepool-tests-")
atexit.register(shutil.rmtree, _home, ignore_errors=True)
for _name in [name for name in os.environ if name.startswith("TIDEPOOL_")]:
    if _name not in {"TIDEPOOL_TRACES", "TIDEPOOL_NODE_PREFIX"}:
        del os.environ[_name]
os.environ["TIDEPOOL_HOME"] = _home
os.environ["TIDEPOOL_SECRET_KEY"] = "only-for-tests"

from portal.settings import *  # noqa: E402, F403

if "TEST_DATABASE_URL" in os.environ:
    DATABASES = {"default": connections.database(os.environ["TEST_DATABASE_URL"])}  # noqa: F405
else:
    DATABASES["default"]["TEST"] = {"NAME": f"{_home}/test.sqlite3"}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# No broker runs, unless a test asks for the fixture of that name.
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
CELERY_BROKER_URL = "memory://"
