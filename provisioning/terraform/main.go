// The Terraform provider of Freshet: clusters, topics, access and budgets as code.
package main

import (
	"context"
	"flag"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"freshet/terraform/internal/provider"
)

// version is that of the whole project; the build may set it.
var version = "0.1.0"

func main() {
	debug := flag.Bool("debug", false, "wait for a debugger, and say how Terraform finds it")
	flag.Parse()
	if err := provider.Quiet(); err != nil {
		log.Fatal(err)
	}
	options := providerserver.ServeOpts{Address: provider.Address, Debug: *debug}
	if err := providerserver.Serve(context.Background(), provider.New(version), options); err != nil {
		log.Fatal(err)
	}
}
