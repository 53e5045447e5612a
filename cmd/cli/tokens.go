package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
)

func (a *app) tokensCommand() *cobra.Command {
	command := group(&cobra.Command{
		Use:     "tokens",
		Short:   "Make tokens for the HTTP API, and revoke them",
		Example: "  sluice tokens ls",
	})
	command.AddCommand(a.tokensLsCommand(), a.tokensCreateCommand(), a.tokensRotateCommand(), a.tokensRevokeCommand())
	return command
}

func (a *app) tokensLsCommand() *cobra.Command {
	var after string
	var limit int
	command := &cobra.Command{
		Use:     "ls",
		Short:   "List tokens, by name",
		Example: "  sluice tokens ls\n  sluice tokens ls -o json",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				tokens, err := access.Tokens(ctx, store, after, limit)
				if err != nil {
					return err
				}
				if len(tokens) == 0 && a.output == "table" {
					a.note("no tokens; make one with `sluice tokens create NAME --role ROLE`")
					return nil
				}
				return printList(a, tokens, func(t access.Token) string { return t.Name }, tokenColumns())
			})
		},
	}
	command.Flags().StringVar(&after, "after", "", "continue after this name")
	command.Flags().IntVar(&limit, "limit", 100, "most tokens")
	return command
}

func tokenColumns() []column[access.Token] {
	return []column[access.Token]{
		{"NAME", func(t access.Token) string { return t.Name }, false},
		{"ROLE", func(t access.Token) string { return string(t.Role) }, false},
		{"QUEUES", func(t access.Token) string { return orDash(strings.Join(t.Queues, ",")) }, false},
		{"TENANTS", func(t access.Token) string { return orDash(strings.Join(t.Tenants, ",")) }, false},
		{"USED", func(t access.Token) string { return ago(t.UsedAt) }, true},
		{"EXPIRES", func(t access.Token) string { return ago(t.ExpiresAt) }, true},
		{"OLD SECRET", func(t access.Token) string { return ago(t.OldUntil) }, true},
		{"BY", func(t access.Token) string { return t.ChangedBy }, false},
	}
}

// madeToken is a token with its secret.
type madeToken struct {
	access.Token
	Secret string `json:"secret"`
}

// printToken prints a secret, which nobody can print again.
func (a *app) printToken(token access.Token, secret string) error {
	return a.printOne(madeToken{token, secret}, func() error {
		a.note("keep the secret of token %s now: nobody can read it again", token.Name)
		_, err := fmt.Fprintln(a.stdout, secret)
		return err
	})
}

func (a *app) tokensCreateCommand() *cobra.Command {
	var role, expires string
	var ends time.Duration
	token := access.Token{}
	var roles []string
	for _, role := range access.Roles() {
		roles = append(roles, string(role))
	}
	command := &cobra.Command{
		Use:   "create NAME --role ROLE",
		Short: "Create a token, and print its secret once",
		Long: `Creates a token for callers of the HTTP API of "sluice serve". They send its secret in the header
"Authorization: Bearer SECRET". The store keeps a hash only.

  viewer     sees everything but payloads, checkpoints and results
  reader     sees everything
  producer   enqueues, and follows jobs whose ids it knows
  worker     claims jobs too
  operator   sees everything, enqueues, acts on jobs and changes settings
  admin      may do everything

With --queue and --tenant the token knows only these; other jobs are not there for it. Keys are of a
queue: tenants that share a queue share its keys.`,
		Example: "  sluice tokens create shop --role producer --queue 'mail.*' --expires-in 90d\n  sluice tokens create acme --role viewer --tenant acme --reason \"read-only link\"",
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			token.Name, token.Role = args[0], access.Role(role)
			if expires != "" && ends > 0 {
				return usagef("give either --expires-at or --expires-in")
			}
			var err error
			if token.ExpiresAt, err = parseTime("--expires-at", expires); err != nil {
				return err
			}
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				if ends > 0 {
					now, err := store.Now(ctx)
					if err != nil {
						return err
					}
					token.ExpiresAt = now.Add(ends)
				}
				made, secret, err := access.Create(ctx, store, token, a.act(""))
				if errors.Is(err, sluice.ErrConflict) {
					return codedError{err, exitRefused, fmt.Sprintf("give it a new secret with `sluice tokens rotate %s`, or choose another name", token.Name)}
				}
				if err != nil {
					return err
				}
				return a.printToken(made, secret)
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&role, "role", "", strings.Join(roles, ", "))
	flags.StringArrayVar(&token.Queues, "queue", nil, "only this queue, or queues that begin so, such as 'mail.*'; repeatable")
	flags.StringArrayVar(&token.Tenants, "tenant", nil, "only this tenant, or tenants that begin so, such as 'eu-*'; repeatable")
	flags.StringVar(&expires, "expires-at", "", "end of the token, such as 2026-12-01T16:00:00Z (default: never)")
	flags.Var(duration{&ends}, "expires-in", "end of the token from now, such as 90d")
	_ = command.MarkFlagRequired("role")
	return command
}

func (a *app) tokensRotateCommand() *cobra.Command {
	var overlap time.Duration
	command := &cobra.Command{
		Use:     "rotate NAME",
		Short:   "Give a token a new secret, and print it once",
		Example: "  sluice tokens rotate shop --overlap 1d",
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				token, secret, err := access.Rotate(ctx, store, args[0], overlap, a.act(""))
				if err != nil {
					return err
				}
				return a.printToken(token, secret)
			})
		},
	}
	command.Flags().Var(duration{&overlap}, "overlap", "how long the old secret still works, at most 30d (default: not at all)")
	return command
}

func (a *app) tokensRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "revoke NAME",
		Short:   "End a token within 5 s",
		Example: "  sluice tokens revoke shop --reason \"leaked\"",
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				if err := access.Revoke(ctx, store, args[0], a.act("")); err != nil {
					return err
				}
				a.note("token %s is revoked", args[0])
				return nil
			})
		},
	}
}
