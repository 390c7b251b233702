package provider

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
)

const (
	invitationPending = "pending"
	invitationClosed  = "invitation_closed"
)

// memberModel is a person by their address: invited at first, a member as soon as they accept. Both
// are one resource, because nobody can say in a configuration which of them it is at the moment.
type memberModel struct {
	ID    types.String `tfsdk:"id"`
	Email types.String `tfsdk:"email"`
	Role  types.String `tfsdk:"role"`
}

func memberResource() resource.Resource {
	return &managed[memberModel]{
		frame:  frame{name: "member"},
		schema: memberSchema(),
		create: createMember,
		read:   readMember,
		update: updateMember,
		remove: removeMember,
		identify: func(_ context.Context, _ *session, id string) (map[string]string, error) {
			return map[string]string{"id": id, "email": id}, nil
		},
	}
}

func memberSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A person in the organisation, by their address. Making it sends an " +
			"invitation, good for seven days; when it is accepted nothing changes here. One that ran " +
			"out, or a member who left, shows as to be made again. Destroying it revokes the " +
			"invitation or removes the member, with the keys that they made. Who has joined is in " +
			"`data.freshet_member`.",
		Attributes: map[string]schema.Attribute{
			"id": computedText("The address."),
			"email": fixedText("Address, in lower case.", mailAddress(),
				stringvalidator.LengthAtMost(254)),
			"role": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString("member"),
				MarkdownDescription: "Role in the organisation: " + quoted(accountRoles) + ", at most " +
					"that of the API key. Default: `member`, which grants nothing but what " +
					"`freshet_role_binding` gives. Another role for somebody who has not accepted yet " +
					"sends another mail, and ends the link of the one before.",
				Validators: []validator.String{stringvalidator.OneOf(accountRoles...)},
			},
		},
	}
}

// person is a member or an invitation that may still be accepted: one of both.
type person struct {
	member     *api.Member
	invitation *api.Invitation
}

// personOf looks an address up; who is neither is a not-found error.
func (s *session) personOf(ctx context.Context, email string) (person, error) {
	member, there, err := s.members.Find(ctx, organization, email)
	if err != nil {
		return person{}, err
	}
	if there {
		return person{member: &member}, nil
	}
	invitation, err := s.invitations.get(ctx, organization, email)
	return person{invitation: &invitation}, err
}

func (p person) role() string {
	if p.member != nil {
		return p.member.Role
	}
	return p.invitation.Role
}

// pendingInvitations reads those that may still be accepted.
func pendingInvitations(
	client *api.Client,
) func(context.Context) ([]api.Invitation, error) {
	return func(ctx context.Context) ([]api.Invitation, error) {
		all, err := client.Invitations(ctx)
		return slices.DeleteFunc(all, func(each api.Invitation) bool {
			return each.State != invitationPending
		}), err
	}
}

func createMember(ctx context.Context, s *session, plan *memberModel, _ memberModel) (bool, error) {
	email := plan.Email.ValueString()
	err := s.invite(ctx, api.NewInvitation{Email: email, Role: plan.Role.ValueString()})
	if api.HasCode(err, "already_member", "already_invited") {
		err = fmt.Errorf("%w: import %s to manage them here", err, email)
	}
	plan.ID = types.StringValue(email)
	return err == nil, err
}

func (s *session) invite(ctx context.Context, wanted api.NewInvitation) error {
	made, err := s.api.CreateInvitation(ctx, wanted)
	if err == nil {
		s.invitations.Put(organization, made)
	}
	return err
}

func readMember(ctx context.Context, s *session, state *memberModel) error {
	found, err := s.personOf(ctx, state.Email.ValueString())
	if err != nil {
		return err
	}
	state.ID = state.Email
	state.Role = types.StringValue(found.role())
	return nil
}

func updateMember(
	ctx context.Context, s *session, plan *memberModel, state, _ memberModel,
) error {
	email, role := state.Email.ValueString(), plan.Role.ValueString()
	return s.unlessAccepted(func() error {
		found, err := s.personOf(ctx, email)
		switch {
		case err != nil:
			return err
		case found.invitation != nil:
			if err := s.revoke(ctx, *found.invitation); err != nil {
				return err
			}
			// Roles in projects that somebody gave with it stay.
			again := found.invitation.NewInvitation
			again.Role = role
			return s.invite(ctx, again)
		}
		changed, err := s.api.UpdateMember(ctx, found.member.ID, api.RoleChange{Role: role})
		if err == nil {
			s.members.Put(organization, changed)
		}
		return err
	})
}

func removeMember(ctx context.Context, s *session, state memberModel) error {
	email := state.Email.ValueString()
	return s.unlessAccepted(func() error {
		found, err := s.personOf(ctx, email)
		switch {
		case api.IsNotFound(err):
			return nil
		case err != nil:
			return err
		case found.invitation != nil:
			return s.revoke(ctx, *found.invitation)
		}
		return s.members.removed(organization, email, s.api.DeleteMember(ctx, found.member.ID))
	})
}

func (s *session) revoke(ctx context.Context, invitation api.Invitation) error {
	err := s.api.RevokeInvitation(ctx, invitation.ID)
	return s.invitations.removed(organization, invitation.Email, err)
}

// unlessAccepted does something with a person. If they accept meanwhile it is done once more, with
// the member that they are now.
func (s *session) unlessAccepted(do func() error) error {
	err := do()
	if api.HasCode(err, invitationClosed) {
		s.members.Forget(organization)
		s.invitations.Forget(organization)
		err = do()
	}
	return err
}
