package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"freshet/terraform/internal/api"
)

// definition is one type of resource: its schema, and what is done with the service. M: its model.
type definition[M any] struct {
	name   string // without the prefix, and as people say it: "topic", "service_account"
	schema schema.Schema

	// create makes what plan says and fills in what is computed. config has write-only values. With
	// an error and made, the resource exists all the same, and the next run destroys it.
	create func(ctx context.Context, s *session, plan *M, config M) (made bool, err error)
	// read fills in what there is. A not-found error means that it is gone.
	read func(ctx context.Context, s *session, state *M) error
	// update makes it what plan says. nil: every change replaces it.
	update func(ctx context.Context, s *session, plan *M, state, config M) error
	// remove deletes it; what is not there is as good as deleted.
	remove func(ctx context.Context, s *session, state M) error
	// identify gives the attributes by which read finds what an import names.
	identify func(ctx context.Context, s *session, id string) (map[string]string, error)

	// Both may be nil. planChange looks at a change in place or a replacement, and may say that what
	// is computed will be known later; planRemoval looks at what is to be destroyed.
	planChange  func(state M, plan *M, to *diag.Diagnostics)
	planRemoval func(state M, to *diag.Diagnostics)
}

// managed makes a resource of a definition.
type managed[M any] struct {
	definition[M]
	session *session
}

// newManaged gives the provider what makes a resource.
func newManaged[M any](of definition[M]) resource.Resource {
	return &managed[M]{definition: of}
}

var (
	_ resource.ResourceWithConfigure   = (*managed[struct{}])(nil)
	_ resource.ResourceWithImportState = (*managed[struct{}])(nil)
	_ resource.ResourceWithModifyPlan  = (*managed[struct{}])(nil)
)

func (r *managed[M]) Metadata(
	_ context.Context, _ resource.MetadataRequest, answer *resource.MetadataResponse,
) {
	answer.TypeName = typePrefix + r.name
}

func (r *managed[M]) Schema(
	_ context.Context, _ resource.SchemaRequest, answer *resource.SchemaResponse,
) {
	answer.Schema = r.schema
}

func (r *managed[M]) Configure(
	_ context.Context, request resource.ConfigureRequest, answer *resource.ConfigureResponse,
) {
	r.session = sessionFrom(request.ProviderData, &answer.Diagnostics)
}

// sessionFrom is nil while Terraform only validates.
func sessionFrom(data any, to *diag.Diagnostics) *session {
	if data == nil {
		return nil
	}
	found, ok := data.(*session)
	if !ok {
		to.AddError("The provider is not what it should be", fmt.Sprintf("found %T", data))
	}
	return found
}

func (r *managed[M]) Create(
	ctx context.Context, request resource.CreateRequest, answer *resource.CreateResponse,
) {
	var plan, config M
	answer.Diagnostics.Append(request.Plan.Get(ctx, &plan)...)
	answer.Diagnostics.Append(request.Config.Get(ctx, &config)...)
	if answer.Diagnostics.HasError() {
		return
	}
	made, err := r.create(ctx, r.session, &plan, config)
	report(&answer.Diagnostics, "Cannot create the "+r.spoken(), err, attributesOf(ctx, request.Plan))
	if made || err == nil {
		answer.Diagnostics.Append(answer.State.Set(ctx, &plan)...)
	}
}

func (r *managed[M]) Read(
	ctx context.Context, request resource.ReadRequest, answer *resource.ReadResponse,
) {
	var state M
	answer.Diagnostics.Append(request.State.Get(ctx, &state)...)
	if answer.Diagnostics.HasError() {
		return
	}
	err := r.read(ctx, r.session, &state)
	if api.IsNotFound(err) {
		answer.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		report(&answer.Diagnostics, "Cannot read the "+r.spoken(), err, nil)
		return
	}
	answer.Diagnostics.Append(answer.State.Set(ctx, &state)...)
}

func (r *managed[M]) Update(
	ctx context.Context, request resource.UpdateRequest, answer *resource.UpdateResponse,
) {
	var plan, state, config M
	answer.Diagnostics.Append(request.Plan.Get(ctx, &plan)...)
	answer.Diagnostics.Append(request.State.Get(ctx, &state)...)
	answer.Diagnostics.Append(request.Config.Get(ctx, &config)...)
	if answer.Diagnostics.HasError() {
		return
	}
	if r.update == nil {
		answer.Diagnostics.AddError("Cannot change the "+r.spoken(), "every change replaces it")
		return
	}
	if err := r.update(ctx, r.session, &plan, state, config); err != nil {
		report(&answer.Diagnostics, "Cannot change the "+r.spoken(), err,
			attributesOf(ctx, request.Plan))
		return
	}
	answer.Diagnostics.Append(answer.State.Set(ctx, &plan)...)
}

func (r *managed[M]) Delete(
	ctx context.Context, request resource.DeleteRequest, answer *resource.DeleteResponse,
) {
	var state M
	answer.Diagnostics.Append(request.State.Get(ctx, &state)...)
	if answer.Diagnostics.HasError() {
		return
	}
	err := r.remove(ctx, r.session, state)
	report(&answer.Diagnostics, "Cannot delete the "+r.spoken(), err, nil)
}

func (r *managed[M]) ImportState(
	ctx context.Context, request resource.ImportStateRequest, answer *resource.ImportStateResponse,
) {
	found, err := r.identify(ctx, r.session, request.ID)
	if err != nil {
		report(&answer.Diagnostics, "Cannot import the "+r.spoken(), err, nil)
		return
	}
	for name, value := range found {
		answer.Diagnostics.Append(answer.State.SetAttribute(ctx, path.Root(name), value)...)
	}
}

func (r *managed[M]) ModifyPlan(
	ctx context.Context, request resource.ModifyPlanRequest, answer *resource.ModifyPlanResponse,
) {
	if request.State.Raw.IsNull() {
		return
	}
	var state, plan M
	answer.Diagnostics.Append(request.State.Get(ctx, &state)...)
	if request.Plan.Raw.IsNull() {
		if r.planRemoval != nil {
			r.planRemoval(state, &answer.Diagnostics)
		}
		return
	}
	answer.Diagnostics.Append(request.Plan.Get(ctx, &plan)...)
	if r.planChange != nil && !answer.Diagnostics.HasError() {
		r.planChange(state, &plan, &answer.Diagnostics)
		answer.Diagnostics.Append(answer.Plan.Set(ctx, &plan)...)
	}
}

// spoken is the name in a sentence.
func (r *managed[M]) spoken() string { return spoken(r.name) }

// getter is a plan, a state or a config.
type getter interface {
	Get(ctx context.Context, target any) diag.Diagnostics
}

// attributesOf gives the values of what a resource was asked to be, by name.
func attributesOf(ctx context.Context, from getter) map[string]attr.Value {
	var whole basetypes.ObjectValue
	if from.Get(ctx, &whole).HasError() {
		return nil
	}
	return whole.Attributes()
}
