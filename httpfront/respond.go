package httpfront

import (
	"net/http"
	"strconv"
)

// smallBody is up to where an answer is put together in one buffer; beyond, its
// pieces are written from where they lie.
const smallBody = 32 << 10

// respond writes a JSON-RPC response. member is the rest of the object in
// pieces: `"result":…` or `"error":…` (H6; key order jsonrpc, id, result|error).
func respond(w http.ResponseWriter, status int, id []byte, member ...[]byte) {
	if id == nil {
		id = []byte("null")
	}
	head := append(make([]byte, 0, 256), `{"jsonrpc":"2.0","id":`...)
	head = append(append(head, id...), ',')
	writeJSON(w, status, append(append([][]byte{head}, member...), []byte("}"))...)
}

// writeJSON writes one JSON body that is given in pieces.
func writeJSON(w http.ResponseWriter, status int, pieces ...[]byte) {
	size := 0
	for _, p := range pieces {
		size += len(p)
	}
	w.Header()["Content-Type"] = contentTypeJSON
	w.Header()["Content-Length"] = []string{strconv.Itoa(size)}
	w.WriteHeader(status)
	if size <= smallBody {
		body := pieces[0]
		for _, p := range pieces[1:] {
			body = append(body, p...)
		}
		pieces = [][]byte{body}
	}
	for _, p := range pieces {
		if _, err := w.Write(p); err != nil {
			return // the caller has gone; what it asked for is done and recorded
		}
	}
}

var contentTypeJSON = []string{"application/json"}
