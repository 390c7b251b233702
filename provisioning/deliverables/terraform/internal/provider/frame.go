package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
)

// frame is what resources, data sources and ephemeral resources have in common: a name, without the
// prefix ("topic", "service_account"), and the run that they are part of.
type frame struct {
	name    string
	session *session
}

func (f *frame) typeName() string { return typePrefix + f.name }

// cannot is the summary of an error: "Cannot create the topic".
func (f *frame) cannot(do string) string {
	return "Cannot " + do + " the " + strings.ReplaceAll(f.name, "_", " ")
}

// configure takes the session that the provider was configured with. Without data there is none
// yet, because Terraform also validates before it configures the provider.
func (f *frame) configure(data any, to *diag.Diagnostics) {
	if data == nil {
		return
	}
	current, ok := data.(*session)
	if !ok {
		to.AddError("The provider is not what it should be", fmt.Sprintf("found %T", data))
	}
	f.session = current
}

// getter is a plan, a state or a config.
type getter interface {
	Get(ctx context.Context, target any) diag.Diagnostics
}

// readModel reads the model M from a plan, a state or a config; ok is false where that failed.
func readModel[M any](ctx context.Context, from getter, to *diag.Diagnostics) (model M, ok bool) {
	to.Append(from.Get(ctx, &model)...)
	return model, !to.HasError()
}

// filledIn reads a model from a configuration and calls fill for the rest of it. what is the
// summary of the error where fill fails.
func filledIn[M any](
	ctx context.Context, config getter, to *diag.Diagnostics, what string, fill func(*M) error,
) (*M, bool) {
	model, ok := readModel[M](ctx, config, to)
	if !ok {
		return nil, false
	}
	err := fill(&model)
	reportError(to, what, err, nil)
	return &model, err == nil
}

// attributesOf returns the attributes of a plan, a state or a config by name; nil where it has
// none.
func attributesOf(ctx context.Context, from getter) map[string]attr.Value {
	var whole basetypes.ObjectValue
	if from.Get(ctx, &whole).HasError() {
		return nil
	}
	return whole.Attributes()
}
