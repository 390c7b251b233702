package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"freshet/terraform/internal/api"
)

// managed is one type of resource: its schema, and functions that do its work with the service. M
// is its model.
type managed[M any] struct {
	frame
	schema schema.Schema

	// create makes the resource of a plan and fills in the attributes that the service decides.
	// config has the write-only values. An error with exists means that the resource exists all the
	// same, and that the next run must destroy it.
	create func(ctx context.Context, s *session, plan *M, config M) (exists bool, err error)
	// read fills in the attributes as they are. A not-found error means that the resource is gone.
	read func(ctx context.Context, s *session, state *M) error
	// update changes the resource to what plan says. Where it is nil every change replaces it.
	update func(ctx context.Context, s *session, plan *M, state, config M) error
	// remove deletes the resource. One that does not exist is no error.
	remove func(ctx context.Context, s *session, state M) error
	// identify returns the attributes by which read finds the resource that an import names.
	identify func(ctx context.Context, s *session, id string) (map[string]string, error)

	// Both may be nil. planChange checks a change in place or a replacement, and may mark computed
	// attributes as known later; planRemoval checks a resource that is to be destroyed.
	planChange  func(state M, plan *M, to *diag.Diagnostics)
	planRemoval func(state M, to *diag.Diagnostics)
}

var (
	_ resource.ResourceWithConfigure   = (*managed[struct{}])(nil)
	_ resource.ResourceWithImportState = (*managed[struct{}])(nil)
	_ resource.ResourceWithModifyPlan  = (*managed[struct{}])(nil)
)

func (r *managed[M]) Metadata(
	_ context.Context, _ resource.MetadataRequest, answer *resource.MetadataResponse,
) {
	answer.TypeName = r.typeName()
}

func (r *managed[M]) Schema(
	_ context.Context, _ resource.SchemaRequest, answer *resource.SchemaResponse,
) {
	answer.Schema = r.schema
}

func (r *managed[M]) Configure(
	_ context.Context, request resource.ConfigureRequest, answer *resource.ConfigureResponse,
) {
	r.configure(request.ProviderData, &answer.Diagnostics)
}

func (r *managed[M]) Create(
	ctx context.Context, request resource.CreateRequest, answer *resource.CreateResponse,
) {
	plan, _ := readModel[M](ctx, request.Plan, &answer.Diagnostics)
	config, ok := readModel[M](ctx, request.Config, &answer.Diagnostics)
	if !ok {
		return
	}
	exists, err := r.create(ctx, r.session, &plan, config)
	reportError(&answer.Diagnostics, r.cannot("create"), err, attributesOf(ctx, request.Plan))
	if exists || err == nil {
		answer.Diagnostics.Append(answer.State.Set(ctx, &plan)...)
	}
}

func (r *managed[M]) Read(
	ctx context.Context, request resource.ReadRequest, answer *resource.ReadResponse,
) {
	state, ok := readModel[M](ctx, request.State, &answer.Diagnostics)
	if !ok {
		return
	}
	err := r.read(ctx, r.session, &state)
	switch {
	case api.IsNotFound(err):
		answer.State.RemoveResource(ctx)
	case err != nil:
		reportError(&answer.Diagnostics, r.cannot("read"), err, nil)
	default:
		answer.Diagnostics.Append(answer.State.Set(ctx, &state)...)
	}
}

func (r *managed[M]) Update(
	ctx context.Context, request resource.UpdateRequest, answer *resource.UpdateResponse,
) {
	plan, _ := readModel[M](ctx, request.Plan, &answer.Diagnostics)
	state, _ := readModel[M](ctx, request.State, &answer.Diagnostics)
	config, ok := readModel[M](ctx, request.Config, &answer.Diagnostics)
	if !ok {
		return
	}
	if r.update == nil {
		answer.Diagnostics.AddError(r.cannot("change"), "every change replaces it")
		return
	}
	if err := r.update(ctx, r.session, &plan, state, config); err != nil {
		reportError(&answer.Diagnostics, r.cannot("change"), err, attributesOf(ctx, request.Plan))
		return
	}
	answer.Diagnostics.Append(answer.State.Set(ctx, &plan)...)
}

func (r *managed[M]) Delete(
	ctx context.Context, request resource.DeleteRequest, answer *resource.DeleteResponse,
) {
	if state, ok := readModel[M](ctx, request.State, &answer.Diagnostics); ok {
		reportError(&answer.Diagnostics, r.cannot("delete"), r.remove(ctx, r.session, state), nil)
	}
}

func (r *managed[M]) ImportState(
	ctx context.Context, request resource.ImportStateRequest, answer *resource.ImportStateResponse,
) {
	attributes, err := r.identify(ctx, r.session, request.ID)
	if err != nil {
		reportError(&answer.Diagnostics, r.cannot("import"), err, nil)
		return
	}
	for name, value := range attributes {
		answer.Diagnostics.Append(answer.State.SetAttribute(ctx, path.Root(name), value)...)
	}
}

func (r *managed[M]) ModifyPlan(
	ctx context.Context, request resource.ModifyPlanRequest, answer *resource.ModifyPlanResponse,
) {
	// Most resources of a plan do not change.
	if request.State.Raw.IsNull() || request.Plan.Raw.Equal(request.State.Raw) {
		return
	}
	state, _ := readModel[M](ctx, request.State, &answer.Diagnostics)
	if request.Plan.Raw.IsNull() {
		if r.planRemoval != nil {
			r.planRemoval(state, &answer.Diagnostics)
		}
		return
	}
	plan, ok := readModel[M](ctx, request.Plan, &answer.Diagnostics)
	if r.planChange != nil && ok {
		r.planChange(state, &plan, &answer.Diagnostics)
		answer.Diagnostics.Append(answer.Plan.Set(ctx, &plan)...)
	}
}
