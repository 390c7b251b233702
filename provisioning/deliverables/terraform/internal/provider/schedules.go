package provider

import (
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
)

const schedulesMax = 20

var (
	weekDays  = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}
	clockTime = regexp.MustCompile(`^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$`)
)

var scheduleType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"days":      types.SetType{ElemType: types.StringType},
	"start":     types.StringType,
	"end":       types.StringType,
	"time_zone": types.StringType,
}}

func schedulesAttribute() schema.ListNestedAttribute {
	clock := func(description string) schema.StringAttribute {
		return schema.StringAttribute{
			Required:            true,
			MarkdownDescription: description,
			Validators: []validator.String{
				stringvalidator.RegexMatches(clockTime, "must be a time such as 07:30"),
			},
		}
	}
	return schema.ListNestedAttribute{
		Optional: true,
		MarkdownDescription: "Times of the week in which it does not sleep, whoever is connected. " +
			"Outside of them it sleeps while nobody is.",
		Validators: []validator.List{listvalidator.SizeBetween(1, schedulesMax)},
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"days": schema.SetAttribute{
				Required: true, ElementType: types.StringType,
				MarkdownDescription: "Days on which it begins, such as `mon`.",
				Validators: []validator.Set{
					setvalidator.SizeAtLeast(1),
					setvalidator.ValueStringsAre(stringvalidator.OneOf(weekDays...)),
				},
			},
			"start": clock("`HH:MM`, as clocks in its time zone show it."),
			"end":   clock("`HH:MM` up to `24:00`; of the next day where it is not behind `start`."),
			"time_zone": schema.StringAttribute{
				Optional: true, Computed: true,
				Default: stringdefault.StaticString("UTC"),
				MarkdownDescription: "Its name in the IANA's data base, such as `Europe/Zurich`. " +
					"Default: `UTC`.",
			},
		}},
	}
}

// schedulesWish returns the schedules of a configuration, an empty list where it has none.
func schedulesWish(schedules types.List) *[]api.Schedule {
	wish := []api.Schedule{}
	for _, element := range schedules.Elements() {
		object, ok := element.(types.Object)
		if !ok {
			continue
		}
		fields := object.Attributes()
		days, _ := fields["days"].(types.Set)
		wish = append(wish, api.Schedule{
			Days:     textsIn(days),
			Start:    textIn(fields["start"]),
			End:      textIn(fields["end"]),
			TimeZone: textIn(fields["time_zone"]),
		})
	}
	return &wish
}

func textIn(value attr.Value) string {
	text, _ := value.(types.String)
	return text.ValueString()
}

// schedulesUnlessNone returns schedules as Terraform's value. Where there are none and before is
// null, it stays null.
func schedulesUnlessNone(schedules []api.Schedule, before types.List) types.List {
	if len(schedules) == 0 && before.IsNull() {
		return types.ListNull(scheduleType)
	}
	return schedulesOf(schedules)
}

func schedulesOf(schedules []api.Schedule) types.List {
	values := make([]attr.Value, len(schedules))
	for i, schedule := range schedules {
		values[i] = types.ObjectValueMust(scheduleType.AttrTypes, map[string]attr.Value{
			"days":      textSetOf(schedule.Days),
			"start":     types.StringValue(schedule.Start),
			"end":       types.StringValue(schedule.End),
			"time_zone": types.StringValue(schedule.TimeZone),
		})
	}
	return types.ListValueMust(scheduleType, values)
}
