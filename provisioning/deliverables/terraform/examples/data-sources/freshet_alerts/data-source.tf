data "freshet_alerts" "all" {}

output "firing" {
  value = [for each in data.freshet_alerts.all.alerts : each.name if each.state == "firing"]
}
