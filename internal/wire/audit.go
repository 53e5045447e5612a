package wire

import (
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
)

// AuditHead is the head of the chain of the audit.
type AuditHead struct {
	// Head is the number and the hash of the last seal, as verify-audit takes it.
	Head string `json:"head"`
	// No is the number of the seal, At when it was made, and Upto the last seq that it covers.
	No   int64     `json:"no"`
	At   time.Time `json:"at"`
	Upto int64     `json:"upto"`
	// Seal is the whole seal.
	Seal audit.Seal `json:"seal"`
}

// AuditSealList lists seals.
type AuditSealList struct {
	// Seals are sorted by number.
	Seals []audit.Seal `json:"seals"`
}

// AuditDigest describes an entry without its text.
type AuditDigest struct {
	// Seq numbers the entry, At is when it was written, and Level decides how long it is kept.
	Seq   int64       `json:"seq"`
	At    time.Time   `json:"at"`
	Level audit.Level `json:"level"`
	// Sum is the hash of all of the entry.
	Sum audit.Hash `json:"sum"`
}

// AuditDigestList lists digests.
type AuditDigestList struct {
	// Digests are sorted by seq.
	Digests []AuditDigest `json:"digests"`
}

// AuditBatch lists what a seal covers of a level.
type AuditBatch struct {
	// Batch is the list as it is stored, in base64. Null: there is none.
	Batch []byte `json:"batch"`
}

// AuditKeepBody says how long entries are kept from now on. Levels that are missing stay as they are.
type AuditKeepBody struct {
	ReasonBody
	// Notable and Full are the new durations, such as 90d. 0s: for ever.
	Notable string `json:"notable,omitempty" maxLength:"20"`
	Full    string `json:"full,omitempty" maxLength:"20"`
}

// AuditDigestListOf shows digests.
func AuditDigestListOf(digests []audit.Digest) AuditDigestList {
	out := AuditDigestList{Digests: make([]AuditDigest, len(digests))}
	for i, d := range digests {
		out.Digests[i] = AuditDigest(d)
	}
	return out
}

// Read reads digests above a seq. The error says that they are not in order, which no store answers.
func (l AuditDigestList) Read(after int64) ([]audit.Digest, error) {
	out := make([]audit.Digest, len(l.Digests))
	for i, d := range l.Digests {
		if d.Seq <= after || d.Level != audit.Notable && d.Level != audit.Full {
			return nil, &sluice.InvalidError{Field: "digests", Rule: "must be in order, and each of a known level"}
		}
		out[i], after = audit.Digest(d), d.Seq
	}
	return out, nil
}
