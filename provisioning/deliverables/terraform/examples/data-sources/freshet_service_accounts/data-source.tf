data "freshet_service_accounts" "all" {}
