resource "freshet_role_binding" "pipeline_in_checkout" {
  principal_type = "service_account"
  principal_id   = freshet_service_account.pipeline.id
  project_id     = freshet_project.checkout.id
  role           = "developer"
}
