# By its id or its name.
terraform import freshet_service_account.pipeline pipeline
