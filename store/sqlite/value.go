package sqlite

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
)

// micros makes an argument of a time in microseconds. The zero time makes a null.
func micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// timeOf reads a nullable instant.
func timeOf(at *int64) time.Time {
	if at == nil {
		return time.Time{}
	}
	return time.UnixMicro(*at).UTC()
}

// nullMillis makes an argument of a duration in milliseconds. 0 makes a null.
func nullMillis(d time.Duration) any {
	if d == 0 {
		return nil
	}
	return d.Milliseconds()
}

// nullInt makes an argument of a number. 0 makes a null.
func nullInt(n int) any {
	if n == 0 {
		return nil
	}
	return n
}

// nullText makes an argument of a text. The empty text makes a null.
func nullText(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// nullBytes makes an argument of bytes. No bytes make a null.
func nullBytes(text []byte) any {
	if len(text) == 0 {
		return nil
	}
	return text
}

// nullID makes an argument of an id. The zero id makes a null.
func nullID(id sluice.ID) any {
	if id.IsZero() {
		return nil
	}
	return id[:]
}

func orZero[T any](value *T) T {
	if value == nil {
		var zero T
		return zero
	}
	return *value
}

// idOf reads an id. Null makes the zero id.
func idOf(raw []byte) (id sluice.ID) {
	copy(id[:], raw)
	return id
}

func tokenOf(raw []byte) (token sluice.Token) {
	copy(token[:], raw)
	return token
}

// seqList makes the JSON array of job numbers that a statement takes.
func seqList(seqs []int64) string {
	text, _ := json.Marshal(seqs) // numbers always encode
	return string(text)
}

// idList makes the JSON array of hexadecimal ids that a statement takes.
func idList(ids []sluice.ID) string {
	var text strings.Builder
	text.Grow(2 + 35*len(ids))
	text.WriteByte('[')
	var digits [32]byte
	for i, id := range ids {
		if i > 0 {
			text.WriteByte(',')
		}
		hex.Encode(digits[:], id[:])
		text.WriteByte('"')
		text.Write(digits[:])
		text.WriteByte('"')
	}
	text.WriteByte(']')
	return text.String()
}

// jsonOf makes an argument of labels or states.
func jsonOf(value any) (string, error) {
	text, err := json.Marshal(value)
	return string(text), err
}

func labelsOf(text *string) (map[string]string, error) {
	if text == nil {
		return nil, nil
	}
	var labels map[string]string
	err := json.Unmarshal([]byte(*text), &labels)
	return labels, err
}
