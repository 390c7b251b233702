data "freshet_role_bindings" "checkout" {
  project_id = data.freshet_project.checkout.id
}
