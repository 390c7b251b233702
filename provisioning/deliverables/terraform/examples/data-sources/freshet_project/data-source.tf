data "freshet_project" "checkout" {
  name = "checkout"
}
