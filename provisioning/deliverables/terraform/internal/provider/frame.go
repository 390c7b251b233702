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

// cannot begins an error of something that was to be done.
func (f *frame) cannot(do string) string {
	return "Cannot " + do + " the " + strings.ReplaceAll(f.name, "_", " ")
}

// configure takes the session that the provider was configured with. Terraform also validates
// without one.
func (f *frame) configure(data any, to *diag.Diagnostics) {
	if data == nil {
		return
	}
	found, ok := data.(*session)
	if !ok {
		to.AddError("The provider is not what it should be", fmt.Sprintf("found %T", data))
	}
	f.session = found
}

// getter is a plan, a state or a config.
type getter interface {
	Get(ctx context.Context, target any) diag.Diagnostics
}

// given reads a model; false where it is not as it should be.
func given[M any](ctx context.Context, from getter, to *diag.Diagnostics) (model M, ok bool) {
	to.Append(from.Get(ctx, &model)...)
	return model, !to.HasError()
}

// filledIn reads what a configuration gives and has the rest filled in. what begins the error where
// that fails.
func filledIn[M any](
	ctx context.Context, config getter, to *diag.Diagnostics, what string, fill func(*M) error,
) (*M, bool) {
	model, ok := given[M](ctx, config, to)
	if !ok {
		return nil, false
	}
	err := fill(&model)
	report(to, what, err, nil)
	return &model, err == nil
}

// attributesOf gives the values of what a resource was asked to be, by name.
func attributesOf(ctx context.Context, from getter) map[string]attr.Value {
	var whole basetypes.ObjectValue
	if from.Get(ctx, &whole).HasError() {
		return nil
	}
	return whole.Attributes()
}
