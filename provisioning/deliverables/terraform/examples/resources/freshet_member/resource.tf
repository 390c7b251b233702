resource "freshet_member" "people" {
  for_each = {
    "anna@example.org" = "admin"
    "bob@example.org"  = "member"
  }
  email = each.key
  role  = each.value
}

# Whoever has joined gets a role in a project.
data "freshet_members" "all" {}

locals {
  joined = [for each in data.freshet_members.all.members : each if each.state == "accepted"]
}

resource "freshet_role_binding" "checkout" {
  for_each       = { for each in local.joined : each.email => each.user_id if each.role == "member" }
  principal_type = "user"
  principal_id   = each.value
  project_id     = freshet_project.checkout.id
  role           = "developer"
}
