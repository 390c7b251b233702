// The Terraform provider of Freshet: clusters, topics, access, people and budgets as code.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"runtime/debug"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"freshet/terraform/internal/provider"
)

// version is the version of the whole project; the build may set it.
var version = "0.1.0"

// garbagePercent lets the heap grow to five times what is in use before garbage is collected. A
// process of the provider lives for one walk, which allocates much and keeps little: with Go's
// default of 100, collecting takes a fifth of the CPU time of a plan.
const garbagePercent = 400

func main() {
	wait := flag.Bool("debug", false, "wait for a debugger, and say how Terraform finds it")
	flag.Parse()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	if err := provider.Quiet(); err != nil {
		log.Fatal(err)
	}
	options := providerserver.ServeOpts{Address: provider.Address, Debug: *wait}
	if err := providerserver.Serve(context.Background(), provider.New(version), options); err != nil {
		log.Fatal(err)
	}
}
