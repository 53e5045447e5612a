// These give the tests in package signin_test access to inner parts of package signin.
package signin

import "encoding/json"

// Seal seals JSON as the cookie of a purpose.
func (h *Handler) Seal(purpose, text string) string {
	return h.sealer.seal(purpose, json.RawMessage(text))
}

// Told returns the claims of an ID token and of the userinfo endpoint together.
func Told(claims, told map[string]any) map[string]any {
	addTold(claims, told)
	return claims
}
