package provider

import (
	"os"
	"strings"
)

const (
	// The names of all variables that control Terraform's logs begin with it (TF_LOG_PROVIDER).
	logPrefix = "TF_LOG"
	// frameworkLevel is the variable for what the framework logs of calls to the provider.
	frameworkLevel = "TF_LOG_SDK"
)

// Quiet switches the framework's traces off, unless a variable asks for a log. Otherwise every call
// writes dozens of lines that Terraform reads and discards, which is half of the time of a plan.
func Quiet() error {
	for _, variable := range os.Environ() {
		if strings.HasPrefix(variable, logPrefix) {
			return nil
		}
	}
	return os.Setenv(frameworkLevel, "warn")
}
