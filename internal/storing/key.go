package storing

import (
	"fmt"

	"github.com/sluice-queue/sluice"
)

// KeyOfOther returns the error of a job whose key a job of another tenant holds. It names neither that job nor its tenant.
func KeyOfOther(key string) error {
	return &sluice.InvalidError{Field: "key", Rule: fmt.Sprintf("a job of another tenant holds %.80q; begin the key with the name of the tenant", key)}
}

// MayRefuseKey reports whether the holder of a job's key may be a reason to refuse the job.
func MayRefuseKey(in *sluice.Insert) bool {
	return in.Key != "" && in.OnDuplicate != "" && in.OnDuplicate != sluice.Keep
}

// RefusesKey reports whether a job is refused because it would change the holder of its key. Holder is the holder's tenant.
func RefusesKey(in *sluice.Insert, holder string) bool {
	return in.Tenant != holder && MayRefuseKey(in)
}

// KeyRefusal returns the error of a job that would change the holder of its key, a job of another tenant.
func KeyRefusal(in *sluice.Insert) error {
	return &sluice.InvalidError{Field: "key", Rule: fmt.Sprintf("a job of another tenant holds %.80q, and %s would change it; begin the key with the name of the tenant, or set on_duplicate to keep", in.Key, in.OnDuplicate)}
}
