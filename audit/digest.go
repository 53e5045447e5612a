package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Row is an entry as stored.
type Row struct {
	Seq int64
	// At is in microseconds since 1970, UTC.
	At                                           int64
	Actor, Object, Name, Event, From, To, Reason []byte
	Generation                                   int64
	// JobID and ActID have 16 bytes; nil: none. Before and After are JSON as the store returns it; nil: none.
	JobID, ActID, Before, After []byte
}

// Digest describes an entry without its text.
type Digest struct {
	Seq   int64
	At    time.Time
	Level Level
	Sum   Hash
}

// Digester digests rows, and reuses its buffer.
type Digester struct{ text []byte }

const entryKind = "sluice audit entry 1\n"

// Digest digests a row: every column with its length, so that no two rows have the same text.
func (d *Digester) Digest(r *Row) Digest {
	text := append(d.text[:0], entryKind...)
	text = binary.BigEndian.AppendUint64(text, uint64(r.Seq))
	text = binary.BigEndian.AppendUint64(text, uint64(r.At))
	text = binary.BigEndian.AppendUint64(text, uint64(r.Generation))
	for _, column := range [...][]byte{r.Actor, r.Object, r.Name, r.Event, r.From, r.To, r.Reason} {
		text = append(binary.AppendUvarint(text, uint64(len(column))), column...)
	}
	for _, column := range [...][]byte{r.JobID, r.ActID, r.Before, r.After} { // these columns may be absent
		if column == nil {
			text = append(text, 0)
			continue
		}
		text = append(binary.AppendUvarint(text, uint64(len(column))+1), column...)
	}
	d.text = text
	return Digest{Seq: r.Seq, At: time.UnixMicro(r.At).UTC(), Level: LevelOf(string(r.Object), string(r.Event)), Sum: sha256.Sum256(text)}
}

const sealKind = "sluice audit seal 1\n"

// seal computes the hash of a seal.
func (s *Seal) seal() Hash {
	text := []byte(sealKind)
	number := func(n int64) { text = binary.BigEndian.AppendUint64(text, uint64(n)) }
	number(s.No)
	number(s.At.UnixMicro())
	number(s.Upto)
	text = append(text, s.Previous[:]...)
	for _, level := range Levels() {
		p := s.Part(level)
		number(p.Entries)
		text = append(text, p.Hash[:]...)
		number(p.Gone)
		number(p.Keep.Milliseconds())
	}
	return sha256.Sum256(text)
}

// shortDigestBytes is how much of an entry's digest a batch keeps, so that a fault can name the changed entry. The
// batch's sum covers every digest in full.
const shortDigestBytes = 8

const batchKind = "sluice audit batch 1\n"

// batch lists the entries of one level that a seal covers.
type batch struct {
	entries      int64
	last         int64 // the seq before
	shortDigests []byte
	sums         []byte
}

func (b *batch) add(d Digest) {
	b.shortDigests = append(binary.AppendUvarint(b.shortDigests, uint64(d.Seq-b.last)), d.Sum[:shortDigestBytes]...)
	b.sums = append(b.sums, d.Sum[:]...)
	b.entries, b.last = b.entries+1, d.Seq
}

// body returns the stored form: the kind, then the sum over all digests. Per entry, its distance from the one
// before and the beginning of its digest follow.
func (b *batch) body() []byte {
	if b.entries == 0 {
		return nil
	}
	sum := sha256.Sum256(b.sums)
	body := append([]byte(batchKind), sum[:]...)
	return append(body, b.shortDigests...)
}

func hashOf(body []byte) Hash {
	if body == nil {
		return Hash{}
	}
	return sha256.Sum256(body)
}

// mark is an entry in a batch.
type shortDigest struct {
	seq int64
	sum [shortDigestBytes]byte
}

// shortDigestsOf reads the marks of a body, up to the first unreadable one.
func shortDigestsOf(body []byte) (shortDigests []shortDigest) {
	rest := body[min(len(body), len(batchKind)+sha256.Size):]
	seq := int64(0)
	for len(rest) > 0 {
		distance, n := binary.Uvarint(rest)
		if n <= 0 || len(rest) < n+shortDigestBytes {
			return shortDigests
		}
		seq += int64(distance)
		shortDigests = append(shortDigests, shortDigest{seq, [shortDigestBytes]byte(rest[n:])})
		rest = rest[n+shortDigestBytes:]
	}
	return shortDigests
}
