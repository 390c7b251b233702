data "freshet_service_account" "pipeline" {
  name = "pipeline"
}
