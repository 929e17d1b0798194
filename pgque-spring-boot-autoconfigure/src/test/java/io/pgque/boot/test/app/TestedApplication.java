package io.pgque.boot.test.app;

import org.springframework.boot.autoconfigure.SpringBootApplication;

/**
 * An application whose listeners are tested.
 */
@SpringBootApplication
class TestedApplication {

}
