package wire

import (
	"time"

	"github.com/sluice-queue/sluice/access"
)

// TokenBody is a new token.
type TokenBody struct {
	// Name names the token, by the rule of queue names.
	Name string `json:"name" maxLength:"64"`
	// Role names the rights of the token.
	Role access.Role `json:"role" enum:"viewer,reader,producer,worker,operator,admin"`
	// Queues and Tenants bound the token to these names, or beginnings of names with a * at the end.
	Queues  []string `json:"queues,omitempty" maxItems:"100"`
	Tenants []string `json:"tenants,omitempty" maxItems:"100"`
	// ExpiresAt is when the token ends. Missing: never.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	ReasonBody
}

// NewToken is a token with its secret.
type NewToken struct {
	// Token is the token without its secret.
	Token access.Token `json:"token"`
	// Secret goes into the header Authorization, after Bearer. Nobody can read it again.
	Secret string `json:"secret"`
}

// RotateBody says how a token is rotated.
type RotateBody struct {
	// Overlap is how long the old secret still works, such as 1h; at most 30 days. Missing: not at all.
	Overlap string `json:"overlap,omitempty" maxLength:"20"`
	ReasonBody
}

// TokenList lists tokens.
type TokenList struct {
	// Tokens are sorted by name.
	Tokens []access.Token `json:"tokens"`
}
