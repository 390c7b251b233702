resource "freshet_budget" "team" {
  name         = "Team"
  amount_minor = 5000 # $50.00
  action       = "suspend"
}
