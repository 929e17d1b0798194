package io.pgque.boot.test.app;

import org.springframework.stereotype.Service;

/**
 * A component that is no listener.
 */
@Service
class Warehouse {

	Warehouse() {
		throw new IllegalStateException("not wanted in a test of listeners");
	}

}
