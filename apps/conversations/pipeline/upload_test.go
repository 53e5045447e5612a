package pipeline_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/conversations/devnet"
	"github.com/sluice-queue/sluice/apps/conversations/records"
	"github.com/sluice-queue/sluice/apps/conversations/stages"
	"github.com/sluice-queue/sluice/apps/conversations/upload"
)

// nodes starts a real IPFS node and a real chain.
func nodes(t *testing.T) (stages.Upload, upload.Approved) {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs an IPFS node")
	}
	ipfs, err := devnet.StartIPFS(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ipfs.Stop() })
	chain, err := devnet.StartChain(t.Context(), t.TempDir(), 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = chain.Stop() })
	approved, err := upload.Approve(ipfs.URL, chain.URL)
	if err != nil {
		t.Fatal(err)
	}
	return stages.Upload{IPFSEndpoint: ipfs.URL, Chain: stages.Chain{RPCURL: chain.URL, Contract: chain.Contract, PrivateKeyRef: chain.KeyRef}}, approved
}

// TestUploadGoesOnFromWhereItIs goes on from each point at which a worker can have died. The chain has the learning
// once.
func TestUploadGoesOnFromWhereItIs(t *testing.T) {
	t.Parallel()
	to, approved := nodes(t)
	chain, err := upload.DialChain(t.Context(), http.DefaultClient, to.Chain.RPCURL, to.Chain.Contract, to.Chain.PrivateKeyRef)
	if err != nil {
		t.Fatal(err)
	}
	defer chain.Close()
	points := []string{"before anything", "in IPFS", "signed", "signed behind one that was never sent", "sent", "recorded", "signed with a nonce that was used", "confirmed"}
	for _, point := range points {
		h := newHouse(t)
		h.options.Target, h.options.Approved = &to, approved
		learning := h.learn("The fix was to look at what was there when the worker died: " + point + ".")
		before := h.leaveAt(point, learning, chain)
		job := h.work(stages.Uploading.Name(), sluice.StateCompleted)
		u, err := h.db.Upload(t.Context(), learning)
		if err != nil || u.Status != records.Confirmed || job.Attempts != 0 && point != "signed with a nonce that was used" {
			t.Errorf("%s: %s, %d attempts, the last: %s; %v", point, u.Status, job.Attempts, job.Error, err)
		}
		if before.CID != "" && u.CID != before.CID || strings.HasPrefix(point, "se") && u.TxHash != before.TxHash {
			t.Errorf("%s: %+v became %+v", point, before, u)
		}
		recorded, err := chain.Recorded(t.Context())
		if err != nil || recorded[u.CID] != 1 {
			t.Errorf("%s: recorded %v, %v", point, recorded, err)
		}
	}
}

// learn stores a message, lets the stages find a learning in it, and pauses uploads meanwhile.
func (h *house) learn(text string) (id string) {
	h.Helper()
	act := sluice.Act{By: "test", Reason: "not yet"}
	if err := h.db.Client.Pause(h.Context(), stages.Uploading.Name(), act); err != nil {
		h.Fatal(err)
	}
	h.say(text)
	h.work(stages.Extraction.Name(), sluice.StateCompleted)
	found, err := h.db.Search(h.Context(), "worker died", 10)
	if err != nil || len(found) != 1 {
		h.Fatalf("found %+v, %v", found, err)
	}
	if err := h.db.Client.Resume(h.Context(), stages.Uploading.Name(), act); err != nil {
		h.Fatal(err)
	}
	return found[0].ID
}

// leaveAt does the part of an upload that a worker had done when it died at a point.
func (h *house) leaveAt(point, learning string, chain *upload.Chain) (u records.Upload) {
	h.Helper()
	if point == "before anything" {
		return u
	}
	id, err := upload.CIDOf([]byte(point))
	if err != nil {
		h.Fatal(err)
	}
	u = records.Upload{Status: records.InIPFS, CID: id.String()}
	h.store(func(tx records.Tx) error { return tx.MarkInIPFS(h.Context(), learning, u.CID) })
	if point == "in IPFS" {
		return u
	}
	fees, err := chain.Fees(h.Context(), id)
	if err != nil {
		h.Fatal(err)
	}
	u.Nonce = fees.Nonce
	switch point {
	case "signed behind one that was never sent":
		h.neverSent(chain, fees)
		u.Nonce++
	case "signed with a nonce that was used":
		u.Nonce--
	}
	raw, hash, err := chain.Sign(id, fees, u.Nonce)
	if err != nil {
		h.Fatal(err)
	}
	u.RawTx, u.TxHash = raw, hash.Hex()
	h.store(func(tx records.Tx) error {
		_, err := tx.MarkSigned(h.Context(), learning, chain.Account.Hex(), u)
		return err
	})
	if strings.HasPrefix(point, "signed") {
		return u
	}
	if err := chain.Send(h.Context(), raw); err != nil {
		h.Fatal(err)
	}
	if point == "sent" {
		return u
	}
	block, err := chain.Await(h.Context(), raw, hash, u.Nonce)
	if err != nil {
		h.Fatal(err)
	}
	if point == "confirmed" {
		h.store(func(tx records.Tx) error { _, err := tx.MarkConfirmed(h.Context(), learning, block); return err })
	}
	return u
}

// neverSent stores the signed transaction of another learning, as if its worker had died before it sent the
// transaction.
func (h *house) neverSent(chain *upload.Chain, fees upload.Fees) {
	h.Helper()
	id, err := upload.CIDOf([]byte("never sent"))
	if err != nil {
		h.Fatal(err)
	}
	raw, hash, err := chain.Sign(id, fees, fees.Nonce)
	if err != nil {
		h.Fatal(err)
	}
	h.store(func(tx records.Tx) error {
		if err := tx.MarkInIPFS(h.Context(), "another", id.String()); err != nil {
			return err
		}
		_, err := tx.MarkSigned(h.Context(), "another", chain.Account.Hex(), records.Upload{Nonce: fees.Nonce, TxHash: hash.Hex(), RawTx: raw})
		return err
	})
}

func (h *house) store(do func(tx records.Tx) error) {
	h.Helper()
	if err := h.db.Transact(h.Context(), do); err != nil {
		h.Fatal(err)
	}
}

// TestUploadWaitsForANodeThatIsAway: waiting for a node costs no attempt. A node that is not approved is never asked.
func TestUploadWaitsForANodeThatIsAway(t *testing.T) {
	t.Parallel()
	away := "http://127.0.0.1:1"
	for name, c := range map[string]struct {
		approved []string
		state    sluice.State
	}{
		"away":         {[]string{away}, sluice.StateQueued},
		"not approved": {nil, sluice.StateDead},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			approved, err := upload.Approve(c.approved...)
			if err != nil {
				t.Fatal(err)
			}
			h.options.Approved, h.options.Offline = approved, 30*time.Millisecond
			h.options.Target = &stages.Upload{IPFSEndpoint: away, Chain: stages.Chain{
				RPCURL: away, Contract: "0x00000000000000000000000000000000000000aa", PrivateKeyRef: "file:" + filepath.Join(t.TempDir(), "none"),
			}}
			h.say(lesson)
			h.work(stages.Extraction.Name(), sluice.StateCompleted)
			job := h.work(stages.Uploading.Name(), c.state)
			for c.state == sluice.StateQueued && job.Releases < 2 {
				job = h.work(stages.Uploading.Name(), c.state)
			}
			if c.state == sluice.StateQueued && job.Attempts != 0 || c.state == sluice.StateDead && job.Error != "the endpoint is not approved: 127.0.0.1:1" {
				t.Errorf("attempts %d, error %q", job.Attempts, job.Error)
			}
		})
	}
}
