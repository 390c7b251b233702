resource "freshet_service_account" "pipeline" {
  name        = "pipeline"
  description = "Deploys checkout's topics"
}
