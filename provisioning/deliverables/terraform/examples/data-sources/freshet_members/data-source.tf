data "freshet_members" "all" {}

output "without_second_factor" {
  value = [for each in data.freshet_members.all.members : each.email if each.two_factor == false]
}
