# The one that the API key is of, by this word or by its id.
terraform import freshet_organization_settings.ours current
