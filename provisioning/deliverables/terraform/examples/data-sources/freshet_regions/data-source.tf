data "freshet_regions" "all" {}
