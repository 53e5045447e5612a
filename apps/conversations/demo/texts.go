package demo

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/sluice-queue/sluice"
)

// conversation is one that was made up: its events, what must never be seen again, and what must be learnt.
type conversation struct {
	id      string
	events  [][]byte
	secrets []string
	// topic is a word that is in one learning alone.
	topic string
}

const (
	lower  = "abcdefghijkmnpqrstuvwxyz"
	upper  = "ABCDEFGHJKLMNPQRSTUVWXYZ"
	digits = "0123456789"
)

// maker makes conversations up, the same for the same seed.
type maker struct{ *rand.Rand }

func newMaker(seed uint64) maker { return maker{rand.New(rand.NewPCG(seed, 2025))} }

func (m maker) of(letters string, n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = letters[m.IntN(len(letters))]
	}
	return string(text)
}

func (m maker) key(n int) string {
	return m.of(lower+upper+digits, n-4) + m.of(digits, 2) + m.of(upper, 2)
}

func (m maker) name() string {
	first := []string{"Ada", "Bruno", "Chiara", "Dmitri", "Elif", "Farid", "Greta", "Hiro", "Ines", "Jonas", "Kemal", "Lucía"}
	return first[m.IntN(len(first))] + " " + m.of(upper, 1) + m.of(lower, 7)
}

// secret is a sentence with a secret in it, and the secret.
func (m maker) secret(kind int) (sentence, secret string) {
	switch kind % 14 {
	case 0:
		secret = m.of(lower, 6) + "." + m.of(lower, 5) + "@" + m.of(lower, 7) + ".example.com"
		return "You reach me at " + secret + " until six.", secret
	case 1:
		secret = fmt.Sprintf("+49 %d %d", 151+m.IntN(20), 1000000+m.IntN(8999999))
		return "Call " + secret + " if it burns.", secret
	case 2:
		secret = fmt.Sprintf("%d.%d.%d.%d", 11+m.IntN(100), 100+m.IntN(150), 100+m.IntN(150), 100+m.IntN(150))
		return "The host " + secret + ":5432 does not answer.", secret
	case 3:
		secret = m.of(lower, 9)
		return "See /home/" + secret + "/src/app/main.go for the code.", secret
	case 4:
		secret = m.key(93)
		return "export ANTHROPIC_API_KEY=sk-ant-api03-" + secret + "AA", secret
	case 5:
		secret = "AKIA" + m.of(upper+"234567", 16)
		return "The profile has aws_access_key_id = " + secret + " in it.", secret
	case 6:
		secret = m.key(36)
		return "git clone https://ghp_" + secret + "@github.com/acme/app", secret
	case 7:
		secret = m.key(40)
		return "Authorization: Bearer eyJ" + m.key(20) + ".eyJ" + secret + "." + m.key(43), secret
	case 8:
		secret = m.key(70)
		return "-----BEGIN OPENSSH PRIVATE KEY-----\n" + secret + "\n-----END OPENSSH PRIVATE KEY-----", secret
	case 9:
		secret = m.card()
		return "The test was paid with " + secret + " by mistake.", secret
	case 10:
		secret = fmt.Sprintf("%03d-%02d-%04d", 100+m.IntN(500), 1+m.IntN(99), 1+m.IntN(9999))
		return "The form shows " + secret + " in clear.", secret
	case 11:
		secret = m.of(lower, 4) + m.of(digits, 3) + "!" + m.of(upper, 3)
		return `The config says password: "` + secret + `" there.`, secret
	case 12:
		secret = "sk_live_" + m.key(24)
		return "stripe.api_key = '" + secret + "'", secret
	}
	secret = m.name() // rules do not know it; the second stage does
	return "My name is " + secret + " and I look after the service.", secret
}

func (m maker) card() string {
	number := []byte(fmt.Sprintf("4%014d", m.Int64N(1e14)))
	sum := 0
	for i, c := range number {
		d := int(c - '0')
		if i%2 == 0 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	number = append(number, byte('0'+(10-sum%10)%10))
	return fmt.Sprintf("%s %s %s %s", number[:4], number[4:8], number[8:12], number[12:])
}

var problems = []string{
	"The deploy of the %s service fails since this morning; the log says connection refused and then nothing.",
	"Tests of %s pass here and fail in CI. It began when we moved to the new image.",
	"Requests to %s take eight seconds at the 99th percentile, although the database is idle.",
	"The %s worker restarts every few minutes and loses what it has done.",
}

var fixes = []string{
	"The root cause was that %s opened a connection for each request, so the fix was to share one pool.",
	"It turned out that %s read the clock of another machine; comparing with the database's clock solved it.",
	"We fixed it by letting %s renew its lease while the handler runs instead of making the lease longer.",
	"The fix was to let %s write the row and the job in one transaction, so that neither is there without the other.",
}

// common is what many conversations teach; it must be learnt once.
const common = "Always run the migrations before the new version of a service starts, never after it."

// make makes a conversation of three messages up.
func (m maker) make(number int) conversation {
	c := conversation{id: sluice.NewID().String(), topic: "gateway" + m.of(lower, 8)}
	var asides [3]string
	for i := range asides {
		sentence, secret := m.secret(number*3 + i)
		asides[i] = sentence
		c.secrets = append(c.secrets, secret)
	}
	filler := strings.Repeat("func handle(ctx context.Context, r Request) error { return store.Save(ctx, r.ID, 42) } // step\n", 1+m.IntN(20))
	problem := fmt.Sprintf(problems[m.IntN(len(problems))], c.topic)
	fix := fmt.Sprintf(fixes[m.IntN(len(fixes))], c.topic)
	for i, text := range []string{
		problem + "\n" + asides[0] + "\nWhat can it be?",
		"Let us look at the code first.\n" + filler + asides[1] + "\n" + common,
		"Thanks, it works now.\n" + fix + "\n" + asides[2],
	} {
		role := []string{"user", "assistant", "user"}[i]
		event, _ := json.Marshal(map[string]string{ // strings can be written
			"event": "UserPromptSubmit", "conversation_id": c.id, "id": sluice.NewID().String(), "role": role, "content": text,
		})
		c.events = append(c.events, event)
	}
	return c
}
