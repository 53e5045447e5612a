package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed static templates
var files embed.FS

// asset is a file of the console, as it is sent.
type asset struct {
	kind         string
	plain, small []byte
}

// assets returns the files below static by their paths, and the hash of them all. Each URL of a file has the hash in it,
// so a browser keeps files until they change.
var assets = sync.OnceValues(func() (map[string]asset, string) {
	all, sum := make(map[string]asset), sha256.New()
	_ = fs.WalkDir(files, "static", func(name string, entry fs.DirEntry, err error) error { // files are embedded
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		sum.Write(text)
		var small bytes.Buffer
		out, _ := gzip.NewWriterLevel(&small, gzip.BestCompression) // the level is valid
		_, _ = out.Write(text)
		_ = out.Close()
		all[strings.TrimPrefix(name, "static/")] = asset{mime.TypeByExtension(path.Ext(name)), text, small.Bytes()}
		return nil
	})
	return all, hex.EncodeToString(sum.Sum(nil))[:12]
})

// staticFiles answers with files: /static/HASH/NAME.
var staticFiles = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	all, sum := assets()
	hash, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/static/"), "/")
	file, is := all[name]
	if !is {
		http.NotFound(w, r)
		return
	}
	if hash == sum {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	w.Header().Set("Content-Type", file.kind)
	w.Header().Set("Vary", "Accept-Encoding")
	body := file.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		body = file.small
	}
	_, _ = w.Write(body) // the client may be gone
})
