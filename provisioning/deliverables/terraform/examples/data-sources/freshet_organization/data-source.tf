data "freshet_organization" "ours" {}
