resource "freshet_project" "checkout" {
  name   = "checkout"
  labels = { cost-centre = "4711" }
}
