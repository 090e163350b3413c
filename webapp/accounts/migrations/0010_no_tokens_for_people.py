from django.db import migrations


def without_people(apps, schema_editor):
    """Invitations that a token made end, and no token has the scope any more."""
    apps.get_model("accounts", "OneTimeLink").objects.filter(used_at=None, made_with__isnull=False).delete()
    for token in apps.get_model("accounts", "ApiToken").objects.all():
        if "people" in token.scopes:
            token.scopes = [scope for scope in token.scopes if scope != "people"]
            token.save(update_fields=["scopes"])


class Migration(migrations.Migration):
    dependencies = [("accounts", "0009_sign_ins_by_their_hash")]

    operations = [
        migrations.RunPython(without_people, migrations.RunPython.noop),
        migrations.RemoveField(model_name="onetimelink", name="made_with"),
        migrations.RemoveField(model_name="onetimelink", name="came"),
    ]
