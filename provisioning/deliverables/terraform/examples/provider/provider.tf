terraform {
  required_version = ">= 1.11"
  required_providers {
    freshet = {
      source = "freshet/freshet"
    }
  }
}

# FRESHET_ENDPOINT and FRESHET_API_KEY are in the environment.
provider "freshet" {}
