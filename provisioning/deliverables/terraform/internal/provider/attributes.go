package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	shown "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Attributes that several resources have.

// computedText is a text that the service decides once.
func computedText(description string) schema.StringAttribute {
	return schema.StringAttribute{
		Computed:            true,
		MarkdownDescription: description,
		PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
	}
}

// fixedText is a text that cannot change: another value replaces the resource.
func fixedText(description string, valid ...validator.String) schema.StringAttribute {
	return schema.StringAttribute{
		Required:            true,
		MarkdownDescription: description + " Changing it makes a new one.",
		Validators:          valid,
		PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
	}
}

// inACluster is the id of the cluster that a resource belongs to.
func inACluster() schema.StringAttribute {
	return fixedText("Id of the cluster.", stringvalidator.LengthAtLeast(1))
}

// givenText is a text that says which thing a data source shows.
func givenText(description string) shown.StringAttribute {
	return shown.StringAttribute{Required: true, MarkdownDescription: description}
}

// filterText is a text that chooses among the things that a data source lists; see fitsFilter.
func filterText(description string) shown.StringAttribute {
	return shown.StringAttribute{Optional: true, MarkdownDescription: description}
}

// fitsFilter says whether a filter accepts a text. A filter that is null accepts all.
func fitsFilter(filter types.String, text string) bool {
	return filter.IsNull() || filter.ValueString() == text
}

// shownText is a text that a data source shows.
func shownText(description string) shown.StringAttribute {
	return shown.StringAttribute{Computed: true, MarkdownDescription: description}
}

// shownNumber is a number that a data source shows.
func shownNumber(description string) shown.Int64Attribute {
	return shown.Int64Attribute{Computed: true, MarkdownDescription: description}
}

// shownWhole is a whole number of any length that a data source shows.
func shownWhole(description string) shown.NumberAttribute {
	return shown.NumberAttribute{Computed: true, MarkdownDescription: description}
}

// shownRate is a number with a fraction that a data source shows.
func shownRate(description string) shown.Float64Attribute {
	return shown.Float64Attribute{Computed: true, MarkdownDescription: description}
}

// shownFlag is a truth value that a data source shows.
func shownFlag(description string) shown.BoolAttribute {
	return shown.BoolAttribute{Computed: true, MarkdownDescription: description}
}

// shownMap is a map of texts that a data source shows.
func shownMap(description string) shown.MapAttribute {
	return shown.MapAttribute{
		Computed: true, ElementType: types.StringType, MarkdownDescription: description,
	}
}

// shownList is a list of objects that a data source shows.
func shownList(
	description string, attributes map[string]shown.Attribute,
) shown.ListNestedAttribute {
	return shown.ListNestedAttribute{
		Computed:            true,
		MarkdownDescription: description,
		NestedObject:        shown.NestedAttributeObject{Attributes: attributes},
	}
}

// optionalText returns a pointer to a text, nil for null and unknown.
func optionalText(value types.String) *string {
	if value.IsNull() || value.IsUnknown() {
		return nil
	}
	return value.ValueStringPointer()
}

// optionalNumber returns a pointer to a number, nil for null and unknown.
func optionalNumber(value types.Int64) *int64 {
	if value.IsNull() || value.IsUnknown() {
		return nil
	}
	return value.ValueInt64Pointer()
}

// textsOf returns the texts of a map, an empty one for null.
func textsOf(value types.Map) map[string]string {
	texts := make(map[string]string, len(value.Elements()))
	for key, element := range value.Elements() {
		if text, ok := element.(types.String); ok {
			texts[key] = text.ValueString()
		}
	}
	return texts
}

// mapOf returns a map of texts as Terraform's value; nil becomes an empty map.
func mapOf(texts map[string]string) types.Map {
	if texts == nil {
		texts = map[string]string{}
	}
	// The conversion cannot fail, because every element is a text.
	value, _ := types.MapValueFrom(context.Background(), types.StringType, texts)
	return value
}

// mapUnlessNone returns a map of texts as Terraform's value. Where there are none and before is
// empty too, it returns before: the service does not distinguish null from {}, but Terraform does.
func mapUnlessNone(texts map[string]string, before types.Map) types.Map {
	if len(texts) == 0 && len(before.Elements()) == 0 && !before.IsUnknown() {
		if before.IsNull() {
			return types.MapNull(types.StringType)
		}
		return before
	}
	return mapOf(texts)
}
