# By its id.
terraform import freshet_role_binding.pipeline_in_checkout rb_5xw4mzn6yt2ba3k2jq7v
