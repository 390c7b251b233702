package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"freshet/terraform/internal/api"
)

// managed is one type of resource: its schema, and what is done with the service. M: its model.
type managed[M any] struct {
	frame
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
	plan, _ := given[M](ctx, request.Plan, &answer.Diagnostics)
	config, ok := given[M](ctx, request.Config, &answer.Diagnostics)
	if !ok {
		return
	}
	made, err := r.create(ctx, r.session, &plan, config)
	report(&answer.Diagnostics, r.cannot("create"), err, attributesOf(ctx, request.Plan))
	if made || err == nil {
		answer.Diagnostics.Append(answer.State.Set(ctx, &plan)...)
	}
}

func (r *managed[M]) Read(
	ctx context.Context, request resource.ReadRequest, answer *resource.ReadResponse,
) {
	state, ok := given[M](ctx, request.State, &answer.Diagnostics)
	if !ok {
		return
	}
	err := r.read(ctx, r.session, &state)
	switch {
	case api.IsNotFound(err):
		answer.State.RemoveResource(ctx)
	case err != nil:
		report(&answer.Diagnostics, r.cannot("read"), err, nil)
	default:
		answer.Diagnostics.Append(answer.State.Set(ctx, &state)...)
	}
}

func (r *managed[M]) Update(
	ctx context.Context, request resource.UpdateRequest, answer *resource.UpdateResponse,
) {
	plan, _ := given[M](ctx, request.Plan, &answer.Diagnostics)
	state, _ := given[M](ctx, request.State, &answer.Diagnostics)
	config, ok := given[M](ctx, request.Config, &answer.Diagnostics)
	if !ok {
		return
	}
	if r.update == nil {
		answer.Diagnostics.AddError(r.cannot("change"), "every change replaces it")
		return
	}
	if err := r.update(ctx, r.session, &plan, state, config); err != nil {
		report(&answer.Diagnostics, r.cannot("change"), err, attributesOf(ctx, request.Plan))
		return
	}
	answer.Diagnostics.Append(answer.State.Set(ctx, &plan)...)
}

func (r *managed[M]) Delete(
	ctx context.Context, request resource.DeleteRequest, answer *resource.DeleteResponse,
) {
	if state, ok := given[M](ctx, request.State, &answer.Diagnostics); ok {
		report(&answer.Diagnostics, r.cannot("delete"), r.remove(ctx, r.session, state), nil)
	}
}

func (r *managed[M]) ImportState(
	ctx context.Context, request resource.ImportStateRequest, answer *resource.ImportStateResponse,
) {
	found, err := r.identify(ctx, r.session, request.ID)
	if err != nil {
		report(&answer.Diagnostics, r.cannot("import"), err, nil)
		return
	}
	for name, value := range found {
		answer.Diagnostics.Append(answer.State.SetAttribute(ctx, path.Root(name), value)...)
	}
}

func (r *managed[M]) ModifyPlan(
	ctx context.Context, request resource.ModifyPlanRequest, answer *resource.ModifyPlanResponse,
) {
	// Most of a plan is what stays as it is.
	if request.State.Raw.IsNull() || request.Plan.Raw.Equal(request.State.Raw) {
		return
	}
	state, _ := given[M](ctx, request.State, &answer.Diagnostics)
	if request.Plan.Raw.IsNull() {
		if r.planRemoval != nil {
			r.planRemoval(state, &answer.Diagnostics)
		}
		return
	}
	plan, ok := given[M](ctx, request.Plan, &answer.Diagnostics)
	if r.planChange != nil && ok {
		r.planChange(state, &plan, &answer.Diagnostics)
		answer.Diagnostics.Append(answer.Plan.Set(ctx, &plan)...)
	}
}
