-- leading comment
   -- another

SELECT 1; SELECT 'a;b' , "x;y" FROM (SELECT 1 AS "x;y") t; -- trailing
SELECT $$a;b$$, $t$ ; $$ ; $t$;
SELECT E'a\';b', 'a\', ';';
SELECT /* ; /* nested ; */ ; */ 2;
SELECT (SELECT 1);
\set x 5
\set name NULL
SELECT :x, ':x', ":x" FROM (SELECT 1 AS "5") t;
SELECT :x::int, ':unknown_thing';
SELECT :name::text;
SELECT 1\; SELECT 2 \;SELECT 3;
SELECT 1 AS one, 2 AS two \gset p_
SELECT :p_one + :p_two;
SELECT 'abc' AS txt, true AS b, 9 AS n, 1.50 AS d, 007 AS i, 'yes' AS y; \gset
SELECT ':txt', ':b', ':n', :d, :i;
\set z debug(:b)
\set z debug(:d)
\set z debug(:y)
SELECT 1 AS a \; SELECT 2 AS b2, 3 AS b2 \; SELECT 4 AS c WHERE false \aset q_
SELECT :q_a, :q_b2, ':q_c';
CREATE OR REPLACE FUNCTION pg_temp.f() RETURNS int LANGUAGE SQL BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 1 END; END;
SELECT E'a'
  'b\'; c', 1;
SELECT 'x' -- c ;
 'y;';
SELECT a$b$c FROM (SELECT 1 AS a$b$c) t; SELECT 2 \set k 3
SELECT :k AS "\:k", ':{?k}', :{?k};
\if :k > 2
SELECT 'yes';
\elif 1/0
SELECT 'no';
\else
SELECT 'no2';
\endif
\if false
\elif :k = 3
\if false
SELECT bad;
\else
SELECT 'inner';
\endif
\else
SELECT 'no3';
\endif
\ set spaced 1
\
SELECT :spaced ;;
SELECT 1 - -1 --comment ; here
 ;
/* alone */
\sleep 1 us
\sleep 1ms
\sleep :k us
SELECT 'last without semicolon'
