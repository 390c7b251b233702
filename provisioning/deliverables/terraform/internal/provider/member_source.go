package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
)

// shownMember is a person as data sources show it. Attributes that only members have are null for
// somebody who is invited.
type shownMember struct {
	memberModel
	State     types.String `tfsdk:"state"`
	MemberID  types.String `tfsdk:"member_id"`
	UserID    types.String `tfsdk:"user_id"`
	Name      types.String `tfsdk:"name"`
	TwoFactor types.Bool   `tfsdk:"two_factor"`
	CreatedAt types.String `tfsdk:"created_at"`
}

func showMember(member api.Member) shownMember {
	email := types.StringValue(member.Email)
	return shownMember{
		memberModel: memberModel{ID: email, Email: email, Role: types.StringValue(member.Role)},
		State:       types.StringValue("accepted"),
		MemberID:    types.StringValue(member.ID),
		UserID:      types.StringValue(member.UserID),
		Name:        types.StringValue(member.Name),
		TwoFactor:   types.BoolValue(member.TwoFactor),
		CreatedAt:   types.StringValue(member.CreatedAt),
	}
}

func showInvitation(invitation api.Invitation) shownMember {
	email := types.StringValue(invitation.Email)
	return shownMember{
		memberModel: memberModel{ID: email, Email: email, Role: types.StringValue(invitation.Role)},
		State:       types.StringValue(invitation.State),
		CreatedAt:   types.StringValue(invitation.CreatedAt),
	}
}

func memberAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id":         shownText("The address."),
		"email":      shownText("Address."),
		"role":       shownText("Role in the organization."),
		"state":      shownText("`accepted`, or `pending` of who is invited."),
		"member_id":  shownText("Id of the membership; null of who is invited."),
		"user_id":    shownText("For `freshet_role_binding`; null of who is invited."),
		"name":       shownText("The person's name; null of who is invited."),
		"two_factor": shownFlag("Whether they have a second factor; null of who is invited."),
		"created_at": shownText("When they joined or were invited, RFC 3339."),
	}
}

func memberSource() datasource.DataSource {
	shows := memberAttributes()
	shows["email"] = givenText("Address, in lower case.")
	return newSource("member", "A person in the organization, or invited into it.", shows,
		func(ctx context.Context, s *session, model *shownMember) error {
			current, err := s.personOf(ctx, model.Email.ValueString())
			switch {
			case err != nil:
				return err
			case current.member != nil:
				*model = showMember(*current.member)
			default:
				*model = showInvitation(*current.invitation)
			}
			return nil
		})
}

type membersModel struct {
	Members []shownMember `tfsdk:"members"`
}

func membersSource() datasource.DataSource {
	shows := map[string]schema.Attribute{
		"members": shownList("Members, and behind them who is invited, both by address.",
			memberAttributes()),
	}
	return newSource("members", "All people in the organization, and who is invited.", shows,
		func(ctx context.Context, s *session, model *membersModel) error {
			members, err := s.members.All(ctx, organization)
			if err != nil {
				return err
			}
			invited, err := s.invitations.All(ctx, organization)
			model.Members = append(shownAll(members, every, showMember),
				shownAll(invited, every, showInvitation)...)
			return err
		})
}
