data "freshet_member" "anna" {
  email = "anna@example.org"
}
