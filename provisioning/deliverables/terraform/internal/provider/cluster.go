package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
)

const (
	// Creating takes a second or two. A cluster that takes this long waits for capacity or a
	// person.
	clusterTimeout    = 20 * time.Minute
	brokersMax        = 16
	idleTimeoutMin    = 5
	idleTimeoutMax    = 7 * 24 * 3600
	protectedSummary  = "The cluster is protected against deletion"
	protectedSolution = "cluster %q (%s) holds data and has deletion_protection. To delete it, set " +
		"deletion_protection = false, apply that, and then destroy or replace it."
)

type clusterModel struct {
	ID                 types.String   `tfsdk:"id"`
	Name               types.String   `tfsdk:"name"`
	ProjectID          types.String   `tfsdk:"project_id"`
	Region             types.String   `tfsdk:"region"`
	Labels             types.Map      `tfsdk:"labels"`
	IdleTimeoutS       types.Int64    `tfsdk:"idle_timeout_s"`
	Scale              types.Object   `tfsdk:"scale"`
	Schedules          types.List     `tfsdk:"schedules"`
	DeletionProtection types.Bool     `tfsdk:"deletion_protection"`
	BootstrapServers   types.String   `tfsdk:"bootstrap_servers"`
	Endpoints          types.List     `tfsdk:"endpoints"`
	CreatedAt          types.String   `tfsdk:"created_at"`
	Timeouts           timeouts.Value `tfsdk:"timeouts"`
}

var endpointType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"listener": types.StringType, "bootstrap_servers": types.StringType,
}}

var scaleTypes = map[string]attr.Type{"min": types.Int64Type, "max": types.Int64Type}

func clusterResource() resource.Resource {
	return &managed[clusterModel]{
		frame:       frame{name: "cluster"},
		schema:      clusterSchema(),
		create:      createCluster,
		read:        readCluster,
		update:      updateCluster,
		remove:      removeCluster,
		identify:    identifyCluster,
		planRemoval: refuseProtected,
	}
}

func clusterSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A Kafka cluster. It sleeps while nobody is connected, and costs " +
			"nothing then but its storage. A deleted one can be restored for seven days, in the " +
			"console or by REST.",
		Attributes: map[string]schema.Attribute{
			"id": computedText("Id, such as `cl_3k2jq7v5xw4mzn6yt2ba`."),
			"name": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "Name, unique in the organization.",
			},
			"project_id": schema.StringAttribute{
				Optional:            true,
				Computed:            true,
				MarkdownDescription: "Project that it is in; without it, the default one.",
				PlanModifiers: []planmodifier.String{
					stringplanmodifier.UseStateForUnknown(),
				},
			},
			"region": schema.StringAttribute{
				Optional:            true,
				Computed:            true,
				MarkdownDescription: "One of `freshet_regions`. Changing it makes a new cluster.",
				PlanModifiers: []planmodifier.String{
					stringplanmodifier.UseStateForUnknown(), stringplanmodifier.RequiresReplace(),
				},
			},
			"labels": schema.MapAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: "Labels, all of them.",
			},
			"idle_timeout_s": schema.Int64Attribute{
				Optional:            true,
				Computed:            true,
				MarkdownDescription: "It goes to sleep after so many seconds without a client.",
				Validators: []validator.Int64{
					int64validator.Between(idleTimeoutMin, idleTimeoutMax),
				},
				PlanModifiers: []planmodifier.Int64{int64planmodifier.UseStateForUnknown()},
			},
			"scale":     scaleAttribute(),
			"schedules": schedulesAttribute(),
			"deletion_protection": schema.BoolAttribute{
				Optional: true,
				Computed: true,
				Default:  booldefault.StaticBool(true),
				MarkdownDescription: "Whether deleting is refused. Default: `true`. To destroy the " +
					"cluster, apply `false` first.",
			},
			"bootstrap_servers": computedText("`host:port,…` for Kafka clients."),
			"endpoints": schema.ListNestedAttribute{
				Computed:            true,
				MarkdownDescription: "All ways for clients to connect.",
				PlanModifiers:       []planmodifier.List{listplanmodifier.UseStateForUnknown()},
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"listener": schema.StringAttribute{
						Computed: true, MarkdownDescription: "`SASL_PLAINTEXT` or `SASL_SSL`.",
					},
					"bootstrap_servers": schema.StringAttribute{
						Computed: true, MarkdownDescription: "`host:port,…`",
					},
				}},
			},
			"created_at": computedText("When it was made, RFC 3339."),
			"timeouts":   clusterTimeouts(),
		},
	}
}

func scaleAttribute() schema.SingleNestedAttribute {
	bound := func(description string, least, most int64) schema.Int64Attribute {
		return schema.Int64Attribute{
			Optional:            true,
			Computed:            true,
			MarkdownDescription: description,
			Validators:          []validator.Int64{int64validator.Between(least, most)},
			PlanModifiers:       []planmodifier.Int64{int64planmodifier.UseStateForUnknown()},
		}
	}
	return schema.SingleNestedAttribute{
		Optional:            true,
		Computed:            true,
		MarkdownDescription: "How many brokers it has.",
		PlanModifiers:       []planmodifier.Object{objectplanmodifier.UseStateForUnknown()},
		Attributes: map[string]schema.Attribute{
			"min": bound("`0`: it sleeps while nobody is connected; `1`: it never sleeps.", 0, 1),
			"max": bound("Brokers when awake, 1 to 16; up to the limit `brokers`.", 1, brokersMax),
		},
	}
}

// scaleWish returns the scale that a configuration sets; nil where it sets none.
func scaleWish(scale types.Object) *api.ScaleWish {
	if scale.IsNull() || scale.IsUnknown() {
		return nil
	}
	least, _ := scale.Attributes()["min"].(types.Int64)
	most, _ := scale.Attributes()["max"].(types.Int64)
	return &api.ScaleWish{Min: optionalNumber(least), Max: optionalNumber(most)}
}

func scaleOf(scale api.Scale) types.Object {
	return types.ObjectValueMust(scaleTypes, map[string]attr.Value{
		"min": types.Int64Value(scale.Min), "max": types.Int64Value(scale.Max),
	})
}

func clusterTimeouts() schema.Attribute {
	limits := timeouts.Attributes(context.Background(), timeouts.Opts{Create: true, Delete: true})
	described, ok := limits.(schema.SingleNestedAttribute)
	if !ok {
		return limits
	}
	described.MarkdownDescription = "How long operations may take, such as `30m`. Default: 20 minutes."
	return described
}

func createCluster(
	ctx context.Context, s *session, plan *clusterModel, _ clusterModel,
) (bool, error) {
	ctx, cancel, err := within(ctx, plan.Timeouts.Create)
	if err != nil {
		return false, err
	}
	defer cancel()
	id, err := s.api.CreateCluster(ctx, api.NewCluster{
		Name:      plan.Name.ValueString(),
		ProjectID: optionalText(plan.ProjectID),
		Region:    optionalText(plan.Region),
		Labels:    textsOf(plan.Labels),
		Spec: api.SpecWish{
			IdleTimeoutS: optionalNumber(plan.IdleTimeoutS), Scale: scaleWish(plan.Scale),
			Schedules: schedulesWish(plan.Schedules),
		},
		DeletionProtection: plan.DeletionProtection.ValueBoolPointer(),
	})
	if id == "" {
		return false, err
	}
	s.clusters.Forget(organization)
	// The cluster exists even where its operation failed, so the state must have its attributes.
	cluster, readErr := s.api.Cluster(context.WithoutCancel(ctx), id)
	if readErr != nil {
		cluster = api.Cluster{ID: id}
	}
	plan.show(cluster)
	return true, errors.Join(err, readErr)
}

func readCluster(ctx context.Context, s *session, state *clusterModel) error {
	cluster, err := s.clusters.get(ctx, organization, state.ID.ValueString())
	if err != nil {
		return err
	}
	if cluster.DeletedAt != nil {
		return absent("cluster", cluster.ID)
	}
	state.Name = types.StringValue(cluster.Name)
	state.Labels = mapUnlessNone(cluster.Labels, state.Labels)
	state.Schedules = schedulesUnlessNone(cluster.Spec.Schedules, state.Schedules)
	state.DeletionProtection = types.BoolValue(cluster.DeletionProtection)
	state.show(cluster)
	return nil
}

// show fills in the attributes that the service decides.
func (m *clusterModel) show(cluster api.Cluster) {
	m.ID = types.StringValue(cluster.ID)
	m.ProjectID = types.StringValue(cluster.ProjectID)
	m.Region = types.StringValue(cluster.Region)
	m.IdleTimeoutS = types.Int64Value(cluster.Spec.IdleTimeoutS)
	m.Scale = scaleOf(cluster.Spec.Scale)
	m.BootstrapServers = types.StringValue(cluster.BootstrapServers)
	m.CreatedAt = types.StringValue(cluster.CreatedAt)
	m.Endpoints = endpointsOf(cluster.Endpoints)
}

func endpointsOf(endpoints []api.Endpoint) types.List {
	values := make([]attr.Value, len(endpoints))
	for i, endpoint := range endpoints {
		values[i] = types.ObjectValueMust(endpointType.AttrTypes, map[string]attr.Value{
			"listener":          types.StringValue(endpoint.Listener),
			"bootstrap_servers": types.StringValue(endpoint.BootstrapServers),
		})
	}
	return types.ListValueMust(endpointType, values)
}

func updateCluster(
	ctx context.Context, s *session, plan *clusterModel, state, _ clusterModel,
) error {
	change := api.ClusterChange{}
	if !plan.Name.Equal(state.Name) {
		change.Name = plan.Name.ValueStringPointer()
	}
	if !plan.ProjectID.Equal(state.ProjectID) {
		change.ProjectID = optionalText(plan.ProjectID)
	}
	if labels := textsOf(plan.Labels); !maps.Equal(labels, textsOf(state.Labels)) {
		change.Labels = &labels
	}
	if !plan.IdleTimeoutS.Equal(state.IdleTimeoutS) {
		change.Spec.IdleTimeoutS = optionalNumber(plan.IdleTimeoutS)
	}
	if !plan.Scale.Equal(state.Scale) {
		change.Spec.Scale = scaleWish(plan.Scale)
	}
	if !plan.Schedules.Equal(state.Schedules) {
		change.Spec.Schedules = schedulesWish(plan.Schedules)
	}
	if !plan.DeletionProtection.Equal(state.DeletionProtection) {
		change.DeletionProtection = plan.DeletionProtection.ValueBoolPointer()
	}
	cluster, err := s.api.UpdateCluster(ctx, state.ID.ValueString(), change)
	if err != nil {
		return err
	}
	s.clusters.Forget(organization)
	plan.show(cluster)
	return nil
}

func removeCluster(ctx context.Context, s *session, state clusterModel) error {
	ctx, cancel, err := within(ctx, state.Timeouts.Delete)
	if err != nil {
		return err
	}
	defer cancel()
	id := state.ID.ValueString()
	// The name, which confirms the deletion, is read now: somebody may have renamed the cluster.
	cluster, err := s.api.Cluster(ctx, id)
	if api.IsNotFound(err) {
		return nil
	}
	if err == nil {
		err = s.api.DeleteCluster(ctx, id, cluster.Name)
	}
	if api.HasCode(err, "deletion_protected") {
		return fmt.Errorf(protectedSolution+" %w", cluster.Name, id, err)
	}
	s.clusters.Forget(organization)
	return err
}

// identifyCluster reads the id of an import: the cluster's id or name.
func identifyCluster(ctx context.Context, s *session, id string) (map[string]string, error) {
	clusterID, err := s.clusterID(ctx, strings.TrimSpace(id))
	return map[string]string{"id": clusterID}, err
}

func refuseProtected(state clusterModel, to *diag.Diagnostics) {
	if state.DeletionProtection.ValueBool() {
		to.AddAttributeError(path.Root("deletion_protection"), protectedSummary,
			fmt.Sprintf(protectedSolution, state.Name.ValueString(), state.ID.ValueString()))
	}
}

// within limits a context to the time that a timeouts block sets.
func within(
	ctx context.Context,
	limit func(context.Context, time.Duration) (time.Duration, diag.Diagnostics),
) (context.Context, context.CancelFunc, error) {
	length, diagnostics := limit(ctx, clusterTimeout)
	if diagnostics.HasError() {
		return nil, nil, errors.New(diagnostics.Errors()[0].Detail())
	}
	limited, cancel := context.WithTimeout(ctx, length)
	return limited, cancel, nil
}
