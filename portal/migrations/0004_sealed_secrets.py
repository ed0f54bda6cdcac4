from django.db import migrations, models

from portal.sealing import seal, unseal


def seal_all(apps, schema_editor):
    Job = apps.get_model("portal", "Job")
    for job in Job.objects.exclude(secrets={}).only("id", "secrets").iterator():
        Job.objects.filter(pk=job.pk).update(sealed_secrets=seal(job.secrets))


def open_all(apps, schema_editor):
    Job = apps.get_model("portal", "Job")
    for job in Job.objects.exclude(sealed_secrets="").only("id", "sealed_secrets").iterator():
        Job.objects.filter(pk=job.pk).update(secrets=unseal(job.sealed_secrets))


class Migration(migrations.Migration):
    dependencies = [
        ("portal", "0003_avoided_for_a_while"),
    ]

    operations = [
        migrations.AddField(
            model_name="job",
            name="sealed_secrets",
            field=models.TextField(blank=True, default=""),
        ),
        migrations.RunPython(seal_all, open_all),
        migrations.RemoveField(
            model_name="job",
            name="secrets",
        ),
    ]
