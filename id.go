package sluice

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"sync"
	"time"
)

// ID names a job. It is a UUID of version 7, so IDs sort by the time at which they were made.
//
// The client chooses IDs. If the answer to an enqueue is lost, you can send the job again, and the store finds the
// job that it stored.
type ID [16]byte

// Token proves a claim. Each claim writes a new random token to its jobs, and each later write of the holder must
// show the token.
//
// A token is random because a counter repeats after a failover or a restored backup.
type Token [16]byte

// Proves reports whether the token is the token of a claim. The zero token proves nothing, not even a zero claim.
func (t Token) Proves(claim Token) bool { return t == claim && t != Token{} }

// idClock has the last time that an ID of this process carries.
var idClock struct {
	sync.Mutex
	last uint64
}

// maxID is the largest UUID, which names nothing (RFC 9562, section 5.10). Lists of jobs begin below it.
var maxID = ID(bytes.Repeat([]byte{0xff}, 16))

// NewID makes an ID that is larger than every earlier ID of this process.
func NewID() ID { return idAt(time.Now()) }

// idAt makes an ID of 48 bits of milliseconds, 12 bits of their fraction and 62 random bits (RFC 9562, section 6.2,
// method 3).
func idAt(at time.Time) ID {
	micros := uint64(at.UnixMicro())
	ticks := micros/1000<<12 | micros%1000*4096/1000

	idClock.Lock()
	if ticks <= idClock.last {
		ticks = idClock.last + 1
	}
	idClock.last = ticks
	idClock.Unlock()

	var id ID
	_, _ = rand.Read(id[8:]) // never fails: crypto/rand ends the program instead
	binary.BigEndian.PutUint64(id[:8], ticks>>12<<16|0x7000|ticks&0xfff)
	id[8] = id[8]&0x3f | 0x80
	return id
}

// NewToken makes a random token.
func NewToken() Token {
	var t Token
	_, _ = rand.Read(t[:])
	return t
}

// Time returns when the ID was made, to the millisecond.
func (id ID) Time() time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:8]) >> 16)).UTC()
}

// IsZero reports whether the ID is unset.
func (id ID) IsZero() bool { return id == ID{} }

// String returns the ID as 8-4-4-4-12 hexadecimal digits.
func (id ID) String() string {
	var text [36]byte
	hex.Encode(text[0:8], id[0:4])
	hex.Encode(text[9:13], id[4:6])
	hex.Encode(text[14:18], id[6:8])
	hex.Encode(text[19:23], id[8:10])
	hex.Encode(text[24:36], id[10:16])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}

// ParseID reads the text that [ID.String] writes. Any other text is an [ErrInvalid].
func ParseID(text string) (ID, error) {
	var id ID
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return id, invalid("id", fmt.Sprintf("%.40q is not an id (8-4-4-4-12 hexadecimal digits)", text))
	}
	digits := text[0:8] + text[9:13] + text[14:18] + text[19:23] + text[24:36]
	if _, err := hex.Decode(id[:], []byte(digits)); err != nil {
		return ID{}, invalid("id", fmt.Sprintf("%q is not an id: %v", text, err))
	}
	return id, nil
}

// MarshalText writes the ID like [ID.String], for JSON.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads the text that [ID.MarshalText] writes. Any other text is an [ErrInvalid].
func (id *ID) UnmarshalText(text []byte) error {
	parsed, err := ParseID(string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}
