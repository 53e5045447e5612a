// Package access says who may do what over HTTP: callers have roles, which may be bounded to queues and tenants.
//
// Begin with [Create], which makes a [Token] with a [Role]; a [Gate] finds the [Caller] of a secret. [Store] is the port
// that SQLite, PostgreSQL and memory implement.
//
// Read next: docs/guide/secure.md.
package access

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Right is a set of kinds of requests.
type Right uint8

// The rights.
const (
	// Follow reads the state and the result of a job whose ID the caller knows.
	Follow Right = 1 << iota
	// Look reads lists and figures, without payloads, checkpoints and results.
	Look
	// Read shows payloads, checkpoints and results too.
	Read
	// Enqueue stores jobs.
	Enqueue
	// Work claims jobs, and settles them.
	Work
	// Operate acts on jobs of others, and changes settings.
	Operate
	// Administer makes tokens, and changes rules of the whole store.
	Administer
)

// Role is a name for a set of rights.
type Role string

// The roles.
const (
	RoleViewer   Role = "viewer"   // sees everything but payloads, checkpoints and results
	RoleReader   Role = "reader"   // sees everything
	RoleProducer Role = "producer" // enqueues jobs, and follows jobs whose IDs it knows
	RoleWorker   Role = "worker"   // claims jobs too
	RoleOperator Role = "operator" // sees everything, enqueues, acts on jobs and changes settings
	RoleAdmin    Role = "admin"    // may do everything
)

// rightsOf are the rights of each role.
var rightsOf = map[Role]Right{
	RoleViewer:   Look,
	RoleReader:   Look | Read | Follow,
	RoleProducer: Follow | Enqueue,
	RoleWorker:   Follow | Enqueue | Work,
	RoleOperator: Follow | Look | Read | Enqueue | Operate,
	RoleAdmin:    Follow | Look | Read | Enqueue | Work | Operate | Administer,
}

// Roles lists the roles, the weakest first.
func Roles() []Role {
	return []Role{RoleViewer, RoleReader, RoleProducer, RoleWorker, RoleOperator, RoleAdmin}
}

// Rights returns the rights of a role. An unknown role has none.
func (r Role) Rights() Right { return rightsOf[r] }

// Check returns a [sluice.ErrInvalid] for an unknown role.
func (r Role) Check() error {
	if _, known := rightsOf[r]; !known {
		return feature.Invalid("role", fmt.Sprintf("%.40q must be one of %s", r, strings.Trim(fmt.Sprint(Roles()), "[]")))
	}
	return nil
}

// Bounds are the queues and tenants that a caller knows. The zero value is no bound.
type Bounds struct {
	// Queues and Tenants are names, or beginnings of names with a * at the end, such as mail.*. Default: all.
	Queues  []string `json:"queues,omitempty"`
	Tenants []string `json:"tenants,omitempty"`
}

// maxPatterns is the most patterns of queues, and of tenants.
const maxPatterns = 100

// Check returns a [sluice.ErrInvalid] for a list without patterns, a pattern that no name matches, and more than 100 patterns.
func (b Bounds) Check() error {
	for field, patterns := range map[string][]string{"queues": b.Queues, "tenants": b.Tenants} {
		if patterns != nil && len(patterns) == 0 { // mostly of a program that found none: taken as no bound, it would open all
			return feature.Invalid(field, "the list is empty; leave it out, or name one")
		}
		if len(patterns) > maxPatterns {
			return feature.Invalid(field, fmt.Sprintf("%d patterns must be at most %d", len(patterns), maxPatterns))
		}
		for _, pattern := range patterns {
			switch bare := strings.TrimSuffix(pattern, "*"); {
			case pattern == "" || strings.Contains(bare, "*"):
				return feature.Invalid(field, fmt.Sprintf("%.60q must be a name, or the beginning of one and a *", pattern))
			case len(pattern) > sluice.MaxTenantBytes+1 || sluice.StoredText(pattern) != pattern:
				return feature.Invalid(field, fmt.Sprintf("%.60q must be valid UTF-8 of at most %d bytes", pattern, sluice.MaxTenantBytes+1))
			}
		}
	}
	return nil
}

// Queue reports whether a queue, or a group, is within the bounds.
func (b Bounds) Queue(name string) bool { return matchAny(b.Queues, name) }

// Tenant reports whether a tenant is within the bounds. A job without a tenant is only within bounds that name no
// tenant.
func (b Bounds) Tenant(name string) bool { return matchAny(b.Tenants, name) }

// Job reports whether a job is within the bounds, by its queue and tenant.
func (b Bounds) Job(queue, tenant string) bool { return b.Queue(queue) && b.Tenant(tenant) }

// None reports whether there are no bounds.
func (b Bounds) None() bool { return len(b.Queues) == 0 && len(b.Tenants) == 0 }

// matchAny reports whether a name matches one of the patterns. No patterns match every name.
func matchAny(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool { return Match(pattern, name) })
}

// Match reports whether a name matches a pattern: the name itself, or its beginning and a *.
func Match(pattern, name string) bool {
	if beginning, is := strings.CutSuffix(pattern, "*"); is {
		return name != "" && strings.HasPrefix(name, beginning)
	}
	return pattern == name
}

// Caller is the sender of a request.
type Caller struct {
	// Name names the caller in the audit and the log, such as `token ci`.
	Name string
	// Role names the caller's rights, and Bounds the queues and tenants that it knows.
	Role Role
	Bounds
}

// May reports whether the caller has any of these rights.
func (c Caller) May(any Right) bool { return c.Role.Rights()&any != 0 }
