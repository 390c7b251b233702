ephemeral "freshet_api_key" "reader" {
  role       = "viewer"
  lifetime_s = 600
}
