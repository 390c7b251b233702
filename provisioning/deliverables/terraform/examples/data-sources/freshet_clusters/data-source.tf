data "freshet_clusters" "all" {}
