data "freshet_projects" "all" {}
