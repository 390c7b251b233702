data "freshet_budget" "team" {
  name = "Team"
}
