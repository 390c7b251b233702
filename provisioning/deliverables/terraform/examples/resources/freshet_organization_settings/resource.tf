resource "freshet_organization_settings" "ours" {
  allowed_addresses   = ["192.0.2.0/24", "2001:db8:17::/48"]
  two_factor_required = true
}
